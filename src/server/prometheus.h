// The Prometheus text format 0.0.4, by hand: families in the order they are written. Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "engine/metrics.h"

namespace server {

using Label = std::pair<std::string_view, std::string_view>;

class PrometheusText {
  public:
    // Appends to `out`, which outlives this.
    explicit PrometheusText(std::string& out) : out_(out) {}

    // HELP and TYPE lines; samples of this family follow. `type`: "counter", "gauge".
    void family(std::string_view name, std::string_view type, std::string_view help);
    // One sample of the last family.
    void sample(double value, std::initializer_list<Label> labels = {});
    void one(std::string_view name, std::string_view type, std::string_view help, double value, std::initializer_list<Label> labels = {});
    // A whole family with cumulative buckets, +Inf, _sum and _count.
    void histogram(std::string_view name, std::string_view help, const engine::Histogram& values, std::initializer_list<Label> labels = {});

  private:
    void line(std::string_view suffix, std::initializer_list<Label> labels, std::string_view le, double value);
    std::string& out_;
    std::string name_;
};

}  // namespace server

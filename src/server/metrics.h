// What /metrics says: the engine's numbers, the server's own, under the prefix hearth_, and on request the vllm:-named
// families that routers, scalers and dashboards read. No prompt, key or user text in any label.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/metrics.h"
#include "server/connection.h"
#include "server/served_model.h"

namespace server {

// Counted by the routes; loop thread.
class RequestCounts {
  public:
    // `route` is a name from the table of routes, never the client's path.
    void count(std::string_view route, unsigned status, double seconds);
    const std::map<std::pair<std::string, unsigned>, uint64_t>& by_route_and_status() const { return counts_; }
    const engine::Histogram& seconds() const { return seconds_; }

  private:
    std::map<std::pair<std::string, unsigned>, uint64_t> counts_;
    engine::Histogram seconds_{engine::request_bounds_s};
};

struct MetricsView {
    std::string_view version;
    double uptime_s = 0;
    double load_s = 0;                   // time that loading took; 0 while it goes on
    const ServedModel* model = nullptr;  // null while loading
    bool stuck = false;
    bool draining = false;
    size_t streams_live = 0, streams_paused = 0;
    const RequestCounts* requests = nullptr;
    HttpStats http;
    uint64_t connections_open = 0;
    bool vllm_names = true;
};

std::string metrics_text(const MetricsView& view);

// Bytes of this process in memory, from /proc/self/statm; 0 when it can't be read.
uint64_t resident_bytes();

}  // namespace server

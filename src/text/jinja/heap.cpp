#include "text/jinja/heap.h"

#include <algorithm>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/failure.h"

namespace text::jinja {

namespace {
constexpr uint64_t steps_between_checks = 512;  // about 50 us of work between two looks at the clock
}

Object::Object(Heap& owner) : heap(owner), previous_(nullptr), next_(owner.first_) {
    if (next_) next_->previous_ = this;
    owner.first_ = this;
}

Object::~Object() {
    (previous_ ? previous_->next_ : heap.first_) = next_;
    if (next_) next_->previous_ = previous_;
}

Heap::Heap(const base::Clock& clock)
    : clock_(clock), deadline_ns_(clock.now_ns() + limits::template_time_ms * 1'000'000), check_at_(steps_between_checks) {}

Heap::~Heap() {
    closing_ = true;
    for (Object* object = first_; object; object = object->next_) object->clear();
    while (first_) delete first_;
}

void Heap::check() {
    if (steps_ > limits::template_steps) {
        check_at_ = UINT64_MAX;  // one failure is enough: destructors may still count
        fail_limit(base::cat("the template takes more than ", limits::template_steps, " steps"));
    }
    if (clock_.now_ns() > deadline_ns_) {
        check_at_ = UINT64_MAX;
        fail_limit(base::cat("the template takes longer than ", limits::template_time_ms, " ms"));
    }
    check_at_ = std::min(steps_ + steps_between_checks, limits::template_steps + 1);
}

void Heap::take_bytes(size_t n) {
    if (n > limits::template_output_bytes - bytes_) {
        fail_limit(base::cat("the template's strings take more than ", limits::template_output_bytes, " bytes"));
    }
    bytes_ += n;
    work(n);
}

void Heap::take_values(size_t n) {
    if (n > limits::template_values - values_) {
        fail_limit(base::cat("the template's lists and dicts hold more than ", limits::template_values, " values"));
    }
    values_ += n;
    step(n / 16);
}

void Heap::retire(Object* object) {
    if (closing_) return;
    retired_.push_back(object);
    if (retiring_) return;
    retiring_ = true;
    while (!retired_.empty()) {
        Object* next = retired_.back();
        retired_.pop_back();
        delete next;
    }
    retiring_ = false;
}

}  // namespace text::jinja

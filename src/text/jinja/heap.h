// Memory and effort of one rendering: every object belongs to a Heap, which counts what is alive and what was done and
// stops a template that wants too much (limits.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace text::jinja {

class Heap;

// Base of all values that live in memory. Reference counted by Value; one thread.
struct Object {
    explicit Object(Heap& owner);
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object();
    // Drops what this object refers to (called before everything dies together, so that cycles don't matter).
    virtual void clear() {}

    Heap& heap;
    uint32_t refs = 0;

  private:
    friend class Heap;
    Object *previous_, *next_;  // all objects of the heap
};

class Heap {
  public:
    explicit Heap(const base::Clock& clock);
    ~Heap();

    // One evaluation step, or `n` of them. Work on n bytes is step(n / bytes_per_step).
    static constexpr uint64_t bytes_per_step = 1024;
    void step(uint64_t n = 1) {
        steps_ += n;
        if (steps_ >= check_at_) [[unlikely]]
            check();
    }
    void work(size_t bytes) { step(bytes / bytes_per_step); }

    // Bytes of strings that come alive and die. taking over the limit fails.
    void take_bytes(size_t n);
    void give_bytes(size_t n) { bytes_ -= n; }
    // The same for elements of lists and dicts.
    void take_values(size_t n);
    void give_values(size_t n) { values_ -= n; }

    // An object without references: destroyed here, one after the other, never recursively.
    void retire(Object* object);

    uint64_t steps() const { return steps_; }

  private:
    friend struct Object;
    void check();

    const base::Clock& clock_;
    int64_t deadline_ns_;
    uint64_t steps_ = 0, check_at_;
    size_t bytes_ = 0, values_ = 0;
    Object* first_ = nullptr;
    std::vector<Object*> retired_;
    bool retiring_ = false, closing_ = false;
};

}  // namespace text::jinja

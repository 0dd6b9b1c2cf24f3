// The threads that compute. run() hands chunks out through one atomic counter, so a worker that was preempted or sleeps
// delays nobody by more than the chunk it holds; who computes a chunk changes no bits.
//
// Waiting: spin for `spin_ns_`, then sleep on a futex. A sleeping worker costs its waker a system call and itself some 40-70 us;
// the caller does not wait for it but computes. An idle pool sleeps. With more threads than CPUs nobody spins.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace kernels::cpu {

// Sets flush-to-zero and denormals-are-zero for this thread while it lives: denormal operands cost a kernel ten times its
// speed, and the modes change bits, so every computing thread has the same.
class FloatMode {
  public:
    FloatMode();
    ~FloatMode();
    FloatMode(const FloatMode&) = delete;
    FloatMode& operator=(const FloatMode&) = delete;

  private:
    void end();  // stops and joins the workers that there are
    unsigned saved_;
};

class Pool {
  public:
    // `threads` >= 1 compute, the caller of run() among them.
    explicit Pool(uint32_t threads);
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    uint32_t threads() const { return threads_; }

    // Calls body(chunk, thread) for each chunk in [0, chunks), thread in [0, threads()); returns when all are done.
    // One caller at a time, and not from inside a body. Allocates nothing. body must not throw.
    template <typename Body>
    void run(uint32_t chunks, Body&& body) {
        using Plain = std::remove_reference_t<Body>;
        if (threads_ == 1 || chunks <= 1) {
            for (uint32_t i = 0; i < chunks; ++i) body(i, 0u);
            return;
        }
        run_shared(chunks, [](void* context, uint32_t chunk, uint32_t thread) { (*static_cast<Plain*>(context))(chunk, thread); },
                   const_cast<void*>(static_cast<const void*>(&body)));
    }

    // Lets sleeping workers wake while the caller still prepares: call it some 50 us before run().
    void wake();

  private:
    void end();  // stops and joins the workers that there are
    using Call = void (*)(void* context, uint32_t chunk, uint32_t thread);
    void run_shared(uint32_t chunks, Call call, void* context);
    void work(uint32_t thread);
    void take_chunks(uint64_t job, uint32_t thread);

    // The ticket is (epoch << 24) | chunks not yet taken. A thread owns a chunk when its compare-and-swap took one off; that
    // can only succeed while job `epoch` has one left, so the job is alive and the fields read before belong to it: they
    // are overwritten only after every chunk was done.
    static constexpr uint64_t chunk_bits = 24, chunk_mask = (uint64_t{1} << chunk_bits) - 1;

    const uint32_t threads_;
    uint64_t spin_ns_ = 0;
    alignas(64) std::atomic<uint64_t> ticket_{0};
    alignas(64) std::atomic<uint32_t> chunks_{0};  // in all, of the running job; written before the ticket
    std::atomic<Call> call_{nullptr};
    std::atomic<void*> context_{nullptr};
    alignas(64) std::atomic<uint32_t> done_{0};    // chunks finished
    std::atomic<uint32_t> caller_sleeps_{0};
    alignas(64) std::atomic<uint32_t> signal_{0};  // futex word of the workers: counts jobs and wake-ups
    std::atomic<uint32_t> sleepers_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> workers_;
};

}  // namespace kernels::cpu

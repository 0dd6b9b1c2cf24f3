#include "kernels/cpu/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/cpu/threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernels::cpu {
namespace {

// Longer than any stage of a small model's step and than the gap between two steps of a busy engine.
constexpr uint64_t default_spin_ns = 50'000;

void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);  // wakes spuriously: callers look again
}

void futex_wake(std::atomic<uint32_t>& word, int count) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0); }

// Waits until ready(), spinning at most spin_ns. False: it is not ready yet. The last part of the spin yields, so that a
// worker which shares this CPU with the thread it waits for lets that one run.
template <typename Ready>
bool spin(uint64_t spin_ns, Ready ready) {
    if (ready()) return true;
    if (spin_ns == 0) return false;
    const uint64_t start = now_ns();
    for (;;) {
        for (int i = 0; i < 32; ++i) {
            if (ready()) return true;
            pause();
        }
        const uint64_t spent = now_ns() - start;
        if (spent >= spin_ns) return ready();
        if (spent >= spin_ns / 2) sched_yield();
    }
}

}  // namespace

FloatMode::FloatMode() : saved_(0) {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    // FTZ 0x8000, DAZ 0x0040; all exceptions masked 0x1f80; round to nearest.
    _mm_setcsr(0x8000 | 0x0040 | 0x1f80);
#endif
}

FloatMode::~FloatMode() {
#if defined(__x86_64__)
    _mm_setcsr(saved_);
#endif
}

Pool::Pool(uint32_t threads) : threads_(threads) {
    CHECK(threads >= 1);
    const CpuCount count = count_cpus();
    const double cpus = count.cgroup_cpus > 0 ? std::min<double>(count.allowed, std::ceil(count.cgroup_cpus)) : count.allowed;
    spin_ns_ = threads <= cpus ? default_spin_ns : 0;
    // Signals belong to the thread that asked for them, never to a worker.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        workers_.reserve(threads - 1);
        for (uint32_t i = 1; i < threads; ++i)
            workers_.emplace_back([this, i] {
                pthread_setname_np(pthread_self(), "compute");
                work(i);
            });
    } catch (...) {  // the system has no more threads: those that there are end before the caller hears of it
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        end();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pool::~Pool() { end(); }

void Pool::end() {
    stop_.store(true);
    wake();
    for (std::thread& worker : workers_) worker.join();
}

void Pool::wake() {
    signal_.fetch_add(1);
    if (sleepers_.load() > 0) futex_wake(signal_, static_cast<int>(threads_));
}

void Pool::take_chunks(uint64_t job, uint32_t thread) {
    const Call call = call_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const uint32_t chunks = chunks_.load(std::memory_order_relaxed);
    uint64_t ticket = job;
    uint32_t finished = 0;
    while ((ticket >> chunk_bits) == (job >> chunk_bits) && (ticket & chunk_mask) > 0) {
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
        call(context, chunks - static_cast<uint32_t>(ticket & chunk_mask), thread);
        ++finished;
        ticket = ticket_.load(std::memory_order_acquire);
    }
    if (finished == 0) return;
    // The job is still ours to finish: it ends only when done_ reaches chunks.
    if (done_.fetch_add(finished) + finished == chunks && thread != 0 && caller_sleeps_.load() != 0) futex_wake(done_, 1);
}

void Pool::run_shared(uint32_t chunks, Call call, void* context) {
    CHECK(chunks < chunk_mask);
    done_.store(0);
    chunks_.store(chunks, std::memory_order_relaxed);
    call_.store(call, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    const uint64_t job = (((ticket_.load(std::memory_order_relaxed) >> chunk_bits) + 1) << chunk_bits) | chunks;
    ticket_.store(job, std::memory_order_release);
    wake();
    take_chunks(job, 0);
    const auto all_done = [&] { return done_.load() == chunks; };
    while (!spin(spin_ns_, all_done)) {
        caller_sleeps_.store(1);
        const uint32_t seen = done_.load();
        if (seen != chunks) futex_wait(done_, seen);
        caller_sleeps_.store(0);
    }
}

void Pool::work(uint32_t thread) {
    const FloatMode mode;
    uint64_t last_epoch = 0;
    for (;;) {
        const uint32_t signal = signal_.load();
        const uint64_t ticket = ticket_.load(std::memory_order_acquire);
        if ((ticket >> chunk_bits) != last_epoch) {
            last_epoch = ticket >> chunk_bits;
            take_chunks(ticket, thread);
            continue;
        }
        if (stop_.load()) return;
        // A wake() before the job arrives also ends the wait: the worker then spins anew.
        if (spin(spin_ns_, [&] { return (ticket_.load(std::memory_order_acquire) >> chunk_bits) != last_epoch || stop_.load(std::memory_order_relaxed); }))
            continue;
        sleepers_.fetch_add(1);
        if (signal_.load() == signal) futex_wait(signal_, signal);
        sleepers_.fetch_sub(1);
    }
}

}  // namespace kernels::cpu

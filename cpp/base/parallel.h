// Spreads independent work over threads.
#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace arcfleet {

// Calls work(worker) for workers 0 .. workers-1, at the same time; for fewer of them
// where the system gives no more threads, so work is to be taken from a common store.
// Worker 0 runs on the calling thread. The first exception is passed on after all have
// ended.
template <typename Work> void run_workers(int workers, const Work &work) {
    if (workers <= 1) {
        work(0);
        return;
    }
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto guarded = [&](int worker) {
        try {
            work(worker);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) {
                failure = std::current_exception();
            }
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(workers - 1));
    try {
        for (int worker = 1; worker < workers; ++worker) {
            threads.emplace_back(guarded, worker);
        }
    } catch (const std::system_error &) {
        // No more threads to be had: those that run share the work.
    }
    guarded(0);
    for (std::thread &thread : threads) {
        thread.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

} // namespace arcfleet

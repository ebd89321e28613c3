// Spreads independent work over threads.
#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace arcfleet {

// Calls work(worker) once for each worker 0 .. workers-1, at the same time. Worker 0
// runs on the calling thread. The first exception thrown is passed on after all have
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
    for (int worker = 1; worker < workers; ++worker) {
        threads.emplace_back(guarded, worker);
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

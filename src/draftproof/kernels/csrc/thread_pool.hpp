// A pool of helper threads that outlives calls, serves many callers at once and survives fork.
//
// A caller works too, and waits only for helpers that have begun: one that wakes late finds
// nothing left to do. The pool is never destroyed: its threads end with the process.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace draftproof {

class ThreadPool {
   public:
    // The pool of this process; a forked child, which inherits no threads, gets a new one.
    static ThreadPool& instance() {
        static const int registered = pthread_atfork(nullptr, nullptr, [] {
            current() = new ThreadPool;
        });
        static_cast<void>(registered);
        return *current();
    }

    // Call body(begin, end) on disjoint ranges that cover 0..count, each at most `grain` long.
    void run(std::int64_t count, std::int64_t grain, int num_threads,
             const std::function<void(std::int64_t, std::int64_t)>& body) {
        const std::int64_t pieces = (count + grain - 1) / grain;
        const int helpers = static_cast<int>(std::min<std::int64_t>(num_threads, pieces)) - 1;
        if (helpers < 1) {
            if (count > 0) body(0, count);
            return;
        }
        auto job = std::make_shared<Job>(count, grain, body);
        {
            std::lock_guard lock(mutex_);
            while (num_threads_ < helpers && start_thread()) {
            }
            for (int i = 0; i < helpers; ++i) queue_.push_back(job);
        }
        wake_.notify_all();
        job->work();
        std::unique_lock lock(job->mutex);
        job->done.wait(lock, [&] { return job->working == 0; });
        if (job->error) std::rethrow_exception(job->error);
    }

   private:
    struct Job {
        Job(std::int64_t total, std::int64_t piece,
            const std::function<void(std::int64_t, std::int64_t)>& function)
            : count(total), grain(piece), body(function) {}

        // Counted before the first piece is taken, so that whoever sees no piece left and nobody
        // working knows that all is done.
        void work() {
            {
                std::lock_guard lock(mutex);
                ++working;
            }
            std::exception_ptr failure;
            try {
                for (;;) {
                    const std::int64_t begin = next.fetch_add(grain);
                    if (begin >= count) break;
                    body(begin, std::min(begin + grain, count));
                }
            } catch (...) {
                failure = std::current_exception();
                next = count;
            }
            std::lock_guard lock(mutex);
            if (failure) error = failure;
            if (--working == 0) done.notify_all();
        }

        const std::int64_t count, grain;
        const std::function<void(std::int64_t, std::int64_t)>& body;  // alive while a piece is left
        std::atomic<std::int64_t> next{0};
        std::mutex mutex;
        std::condition_variable done;
        int working = 0;
        std::exception_ptr error;
    };

    static ThreadPool*& current() {
        static ThreadPool* pool = new ThreadPool;
        return pool;
    }

    bool start_thread() {
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {  // no more threads: the caller works alone
            return false;
        }
        ++num_threads_;
        return true;
    }

    [[noreturn]] void serve() {
        for (;;) {
            std::shared_ptr<Job> job;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return !queue_.empty(); });
                job = std::move(queue_.front());
                queue_.pop_front();
            }
            job->work();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::shared_ptr<Job>> queue_;
    int num_threads_ = 0;
};

}  // namespace draftproof

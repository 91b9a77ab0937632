// Clang's thread-safety annotations, checked by -Wthread-safety and empty for other compilers; and
// the annotated mutexes, locks and condition variable used throughout siltfs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define SILTFS_TS_(x) __attribute__((x))
#else
#define SILTFS_TS_(x)
#endif

#define SILTFS_CAPABILITY(x) SILTFS_TS_(capability(x))
#define SILTFS_SCOPED_CAPABILITY SILTFS_TS_(scoped_lockable)
#define SILTFS_GUARDED_BY(x) SILTFS_TS_(guarded_by(x))
#define SILTFS_PT_GUARDED_BY(x) SILTFS_TS_(pt_guarded_by(x))
#define SILTFS_REQUIRES(...) SILTFS_TS_(requires_capability(__VA_ARGS__))
#define SILTFS_REQUIRES_SHARED(...) SILTFS_TS_(requires_shared_capability(__VA_ARGS__))
#define SILTFS_EXCLUDES(...) SILTFS_TS_(locks_excluded(__VA_ARGS__))
#define SILTFS_ACQUIRE(...) SILTFS_TS_(acquire_capability(__VA_ARGS__))
#define SILTFS_ACQUIRE_SHARED(...) SILTFS_TS_(acquire_shared_capability(__VA_ARGS__))
#define SILTFS_RELEASE(...) SILTFS_TS_(release_capability(__VA_ARGS__))
#define SILTFS_RELEASE_GENERIC(...) SILTFS_TS_(release_generic_capability(__VA_ARGS__))
#define SILTFS_RETURN_CAPABILITY(x) SILTFS_TS_(lock_returned(x))
#define SILTFS_ACQUIRED_BEFORE(...) SILTFS_TS_(acquired_before(__VA_ARGS__))
#define SILTFS_ACQUIRED_AFTER(...) SILTFS_TS_(acquired_after(__VA_ARGS__))
#define SILTFS_NO_THREAD_SAFETY_ANALYSIS SILTFS_TS_(no_thread_safety_analysis)

namespace siltfs {

class SILTFS_CAPABILITY("mutex") Mutex {
 public:
  void Lock() SILTFS_ACQUIRE() { mutex_.lock(); }
  void Unlock() SILTFS_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SILTFS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SILTFS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() SILTFS_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class SILTFS_CAPABILITY("mutex") SharedMutex {
 public:
  void Lock() SILTFS_ACQUIRE() { mutex_.lock(); }
  void Unlock() SILTFS_RELEASE() { mutex_.unlock(); }
  void LockShared() SILTFS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() SILTFS_RELEASE_GENERIC() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SILTFS_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) SILTFS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~WriterLock() SILTFS_RELEASE() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SILTFS_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) SILTFS_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() SILTFS_RELEASE_GENERIC() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// A wait may return without a notification, so callers check their condition in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) SILTFS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns after `timeout` at the latest.
  void WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) SILTFS_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, timeout);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace siltfs

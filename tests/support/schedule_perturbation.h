// Perturbs the schedule of the threads of a test program: threads yield or pause when they take and
// release locks, and when they wait for and signal conditions. This shows races that otherwise need
// luck or a busy machine.
//
// A program that links siltfs_schedule_perturbation has its own pthread functions for locks and
// conditions. The dynamic linker finds them before those of the C library. So the perturbation also
// reaches the threads of RocksDB, and the product's code has no hooks. Builds with a sanitizer
// leave the functions as they are.
//
// Thread-safety: both functions from any thread. The seed decides how often each thread pauses and
// for how long; the operating system still schedules the threads, so one seed does not give one
// schedule.
#pragma once

#include <cstdint>

namespace siltfs::testing {

// From now on threads yield and pause. Each call with a new seed restarts the random numbers of all
// threads. All pauses after one call together take at most about 0.3 s. The seed 0 ends the
// perturbation.
void PerturbSchedule(uint64_t seed);

// Number of yields and pauses of all threads so far.
uint64_t SchedulePerturbations();

}  // namespace siltfs::testing

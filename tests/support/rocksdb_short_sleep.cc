// RocksDB sleeps for a second after each failed flush. This function replaces the one of the C
// library and shortens the sleep to a millisecond. No program that links it depends on the time.
#include <time.h>
#include <unistd.h>

#include <algorithm>

extern "C" int usleep(useconds_t microseconds) {
  const timespec time = {0, std::min<long>(microseconds, 1000) * 1000};
  return nanosleep(&time, nullptr);
}

#if defined(__SANITIZE_ADDRESS__)
// RocksDB leaks a memtable when a flush fails during its close. The function is weak, because a
// program may also link rocksdb_leaks.cc.
extern "C" const char* __lsan_default_suppressions();
extern "C" __attribute__((weak)) const char* __lsan_default_suppressions() {
  return "leak:rocksdb::ColumnFamilyData::ConstructNewMemtable\n";
}
#endif

// RocksDB calls usleep for a second after each failed flush. This function replaces usleep of the C
// library, and sleeps for a millisecond at most. No program that links this file needs a longer
// sleep.
#include <time.h>
#include <unistd.h>

#include <algorithm>

extern "C" int usleep(useconds_t microseconds) {
  const timespec time = {0, std::min<long>(microseconds, 1000) * 1000};
  return nanosleep(&time, nullptr);
}

#if defined(__SANITIZE_ADDRESS__)
// RocksDB leaks a memtable if a flush fails while a database is closed. The function is weak,
// because a program may also link rocksdb_leaks.cc.
extern "C" const char* __lsan_default_suppressions();
extern "C" __attribute__((weak)) const char* __lsan_default_suppressions() {
  return "leak:rocksdb::ColumnFamilyData::ConstructNewMemtable\n";
}
#endif

// RocksDB sleeps for a second after each failed flush. Found before the C library's own, this makes
// that a millisecond in the programs it is part of: nothing there depends on the time.
#include <time.h>
#include <unistd.h>

#include <algorithm>

extern "C" int usleep(useconds_t microseconds) {
  const timespec time = {0, std::min<long>(microseconds, 1000) * 1000};
  return nanosleep(&time, nullptr);
}

#if defined(__SANITIZE_ADDRESS__)
// RocksDB loses a table of its own when a flush fails while it closes.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::ColumnFamilyData::ConstructNewMemtable\n";
}
#endif

// For tests in which the metadata's device fails for good: RocksDB 7.8 loses memtables of a
// database that is resumed or destroyed while its flush cannot succeed (one of 3 KiB each;
// allocated in SwitchMemtable, by Resume or by the destructor). LeakSanitizer asks for this; nobody
// else does.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::DBImpl::SwitchMemtable\n";
}

// For tests in which the metadata's device fails permanently. RocksDB 7.8 leaks memtables, of 3 KiB
// each, if a database is resumed or destroyed while its flush cannot succeed. They are allocated in
// SwitchMemtable, by Resume or by the destructor. It also leaks one when a flush fails during its
// close. Only LeakSanitizer calls this function.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::DBImpl::SwitchMemtable\n"
         "leak:rocksdb::ColumnFamilyData::ConstructNewMemtable\n";
}

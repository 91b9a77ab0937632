// For tests in which the metadata's device fails permanently. RocksDB 7.8 leaks memtables, of 3 KiB
// each, if a database is resumed or destroyed while its flush cannot succeed. Resume and the
// destructor allocate these memtables in SwitchMemtable. RocksDB also leaks a memtable if a flush
// fails while the database is closed. Only LeakSanitizer calls this function.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::DBImpl::SwitchMemtable\n"
         "leak:rocksdb::ColumnFamilyData::ConstructNewMemtable\n";
}

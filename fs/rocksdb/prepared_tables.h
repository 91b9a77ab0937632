// Tables that are written beside a database, and then become part of it at once.
//
// RocksDB takes over the files without copying them. Before that, they have names that RocksDB
// ignores, so a crash leaves files that the next opening removes (RemoveLeft). Then the Env gives
// them names of tables (LinkFile in rocksdb_env.cc). RocksDB removes a table of which the MANIFEST
// does not know.
//
// If their ranges overlap no other table, the records have the sequence number 0. So snapshots that
// were made before show them. With a higher number, which is in the MANIFEST alone, RocksDB would
// soon write each table again, to set the number to 0. Salvage reads records of such tables as
// older than all other changes of their keys (metadata_salvage.h). This is right, because these
// keys were never written before.
//
// Not thread-safe. Memory: the indexes and filters of the tables that are being written, at most
// 8 MiB of records. Errors: those of RocksDB. Durability: on an OK Ingest, all records are durable.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/env/env.h"

namespace rocksdb {
class SstFileWriter;
}  // namespace rocksdb

namespace siltfs {

class PreparedTables {
 public:
  // `db` and `env` must outlive it. No other PreparedTables in this directory has the same number.
  PreparedTables(rocksdb::DB& db, Env& env, std::string directory, uint64_t number);
  // Removes the tables, unless Ingest was called.
  ~PreparedTables();
  PreparedTables(const PreparedTables&) = delete;
  PreparedTables& operator=(const PreparedTables&) = delete;

  // Appends the records to the table of their first byte, or begins a new one. After a failure only
  // the destructor may be called.
  rocksdb::Status Add(const KvRun& run);
  // Syncs all tables. After it, and after a failure, only Ingest and the destructor may be called.
  rocksdb::Status Finish();
  // Adds all tables to the database. After a failure the database may know of them, and RocksDB has
  // removed them. Call Finish before.
  rocksdb::Status Ingest();

  // Removes the tables that a crash has left in the directory.
  static Status RemoveLeft(Env& env, const std::string& directory);

 private:
  struct Table {
    std::unique_ptr<rocksdb::SstFileWriter> writer;
    std::string last_key;
  };

  // Sets `table` to a new table.
  rocksdb::Status Begin(Table& table);
  rocksdb::Status Finish(Table& table);

  rocksdb::DB& db_;
  Env& env_;
  const std::string directory_;
  const uint64_t number_;
  const rocksdb::Options options_;
  std::map<char, Table> open_;      // by the first byte of their keys
  std::vector<std::string> paths_;  // of all tables
  // Of the finished tables.
  rocksdb::IngestExternalFileArg finished_;
};

}  // namespace siltfs

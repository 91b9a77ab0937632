// Runs transactions of SQLite on the mount with the program sqlite3, if it is installed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace siltfs::blocktest {

// Returns whether the program is installed.
bool HaveSqlite();

// Commits transactions one after the other. CheckDatabase recognizes transaction k by its effects.
// For one thread.
class SqliteWriter {
 public:
  // Two lengths of the device's log: before the transaction began, and after it was committed.
  struct Transaction {
    uint64_t begin = 0;
    uint64_t committed = ~uint64_t{0};  // the initial value means never: it failed
  };

  // Starts the program on `path`, which has the state after `done` transactions. With `wal` it uses
  // a write-ahead log, otherwise a rollback journal.
  SqliteWriter(const std::string& path, bool wal, std::function<uint64_t()> position,
               uint64_t done);
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  // Commits transactions until `stop` is true or a transaction fails.
  void Run(const std::atomic<bool>& stop);
  const std::vector<Transaction>& transactions() const { return transactions_; }

 private:
  bool Execute(const std::string& statements);

  std::function<uint64_t()> position_;
  uint64_t next_;
  std::vector<Transaction> transactions_;
  pid_t program_ = -1;
  FILE* input_ = nullptr;
  FILE* output_ = nullptr;
};

// Opens the database, so that SQLite recovers it. Returns a description of the database's problem.
// Returns an empty string if the database is whole and has exactly the first n transactions, with
// `least` <= n <= `most`. If `least` is 0, the database may be missing.
std::string CheckDatabase(const std::string& path, uint64_t least, uint64_t most,
                          const std::string& scratch);

}  // namespace siltfs::blocktest

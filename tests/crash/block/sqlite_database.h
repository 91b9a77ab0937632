// Transactions of SQLite on the mount, by the program sqlite3, where there is one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace siltfs::blocktest {

// Whether the program is there.
bool HaveSqlite();

// Commits transactions one after the other. Transaction k is to be seen by what it leaves, see
// CheckDatabase. For one thread.
class SqliteWriter {
 public:
  // How long the device's log was before a transaction was begun, and when it had been committed.
  struct Transaction {
    uint64_t begin = 0;
    uint64_t committed = ~uint64_t{0};  // never, if it failed
  };

  // Starts the program on `path`, with the state that `done` transactions have left. A log that is
  // written ahead instead of a rollback journal if `wal`.
  SqliteWriter(const std::string& path, bool wal, std::function<uint64_t()> position,
               uint64_t done);
  ~SqliteWriter();
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  // Until `stop`, or until one fails.
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

// Opens the database, which recovers it, and returns what is wrong with it; nothing if it is whole
// and has the first n transactions, `least` <= n <= `most`. No database is there as long as `least`
// is 0.
std::string CheckDatabase(const std::string& path, uint64_t least, uint64_t most,
                          const std::string& scratch);

}  // namespace siltfs::blocktest

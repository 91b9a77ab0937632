#include "tests/crash/block/sqlite_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/process.h"

namespace siltfs::blocktest {

bool HaveSqlite() {
  return access("/usr/bin/sqlite3", X_OK) == 0 || access("/usr/local/bin/sqlite3", X_OK) == 0;
}

SqliteWriter::SqliteWriter(const std::string& path, bool wal, std::function<uint64_t()> position,
                           uint64_t done)
    : position_(std::move(position)), next_(done + 1) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
    throw killtest::SystemFailure("make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const std::array<const char*, 5> words = {"sqlite3", "-batch", "-bail", path.c_str(), nullptr};
  const int error = posix_spawnp(&program_, "sqlite3", &actions, nullptr,
                                 const_cast<char**>(words.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  input_ = fdopen(in[1], "w");
  output_ = fdopen(out[0], "r");
  if (error != 0) program_ = -1;
  // With a rollback journal, a commit is durable when the journal's removal is durable; SQLite
  // ensures this only with EXTRA. Early checkpoints exercise the write-ahead log more.
  Execute(fmt::format("PRAGMA journal_mode={};PRAGMA synchronous={};PRAGMA wal_autocheckpoint=20;",
                      wal ? "WAL" : "DELETE", wal ? "FULL" : "EXTRA"));
}

SqliteWriter::~SqliteWriter() {
  fclose(input_);
  fclose(output_);
  if (program_ > 0) killtest::WaitFor(program_);
}

bool SqliteWriter::Execute(const std::string& statements) {
  if (program_ < 0) return false;
  // If the program has ended, this write fails without a signal, because main ignores SIGPIPE. The
  // missing answer shows the failure.
  fprintf(input_, "%s\nSELECT 'done';\n", statements.c_str());
  fflush(input_);
  std::array<char, 256> line{};
  while (fgets(line.data(), line.size(), output_) != nullptr) {
    if (std::strncmp(line.data(), "done", 4) == 0) return true;
  }
  return false;
}

void SqliteWriter::Run(const std::atomic<bool>& stop) {
  while (!stop) {
    Transaction transaction{.begin = position_()};
    std::string statements = "BEGIN;";
    if (next_ == 1) {
      statements +=
          "CREATE TABLE log(k INTEGER PRIMARY KEY, text TEXT);CREATE INDEX texts ON log(text);"
          "CREATE TABLE sums(n INTEGER, total INTEGER);INSERT INTO sums VALUES(0, 0);";
    }
    statements += fmt::format(
        "INSERT INTO log VALUES({0}, hex(randomblob({1})));"
        "UPDATE sums SET n = {0}, total = total + {0};COMMIT;",
        next_, 20 + next_ * 37 % 900);
    transactions_.push_back(transaction);
    if (!Execute(statements)) return;
    transactions_.back().committed = position_();
    ++next_;
  }
}

std::string CheckDatabase(const std::string& path, uint64_t least, uint64_t most,
                          const std::string& scratch) {
  struct stat there {};
  if (stat(path.c_str(), &there) != 0)
    return least == 0 ? "" : fmt::format("the database with {} transactions is gone", least);
  const killtest::Ended ended = killtest::Run(
      {"sqlite3", "-batch", "-bail", path,
       "PRAGMA integrity_check;SELECT count(*) FROM sqlite_master WHERE name = 'sums';"},
      scratch);
  if (ended.code != 0 || !ended.output.starts_with("ok\n"))
    return fmt::format("SQLite's integrity_check: {}{}", ended.output, ended.errors);
  if (ended.output == "ok\n0\n") {
    return least == 0 ? "" : fmt::format("the database is empty, {} were committed", least);
  }
  const killtest::Ended statistics =
      killtest::Run({"sqlite3", "-batch", "-bail", "-separator", " ", path,
                     "SELECT n, total, (SELECT count(*) FROM log), (SELECT max(k) FROM log) "
                     "FROM sums;"},
                    scratch);
  std::istringstream words(statistics.output);
  uint64_t n = 0, total = 0, count = 0, last = 0;
  words >> n >> total >> count >> last;
  if (total == n * (n + 1) / 2 && count == n && last == n && least <= n && n <= most) return {};
  return fmt::format("the database has \"{}\", of {} to {} transactions", statistics.output, least,
                     most);
}

}  // namespace siltfs::blocktest

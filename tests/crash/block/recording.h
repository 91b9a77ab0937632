// Runs a load on a store that is on a lower file system on a recorded device. Also records all
// promises made during the load, each with the length of the device's log at that moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/crash/block/device.h"
#include "tests/crash/block/fuse_disk.h"
#include "tests/crash/block/lower_file_system.h"
#include "tests/crash/block/product.h"
#include "tests/crash/block/sqlite_database.h"
#include "tests/crash/kill/judge.h"
#include "tests/crash/kill/recorder.h"

namespace siltfs::blocktest {

// The promise of a `siltfs sync` that returned: all operations that ended before the call of sync
// are durable.
struct WholeSync {
  killtest::Stamp begin = 0;
  uint64_t position = 0;  // length of the device's log on return
};

// One writer's part of a session.
struct WriterRecord {
  std::string name;  // of its directory
  killtest::Tree base;
  killtest::History history;
};

// The time from a mount to the end of the next unmount.
struct Session {
  uint64_t first = 0;  // from this position on, the writers' bases are durable
  std::vector<WriterRecord> writers;
  std::vector<WholeSync> syncs;
  // Messages of writers whose calls failed.
  std::vector<std::string> failures;
  int unmount_code = 0;
  int daemon_code = 0;
  std::string unmount_message;
};

struct Recording {
  uint64_t first = 0;  // no cuts are made before this position
  std::vector<Session> sessions;
  std::vector<SqliteWriter::Transaction> transactions;
  bool wal = false;
};

// The directories of a run, and the FUSE disk. No mount and no loop device outlives it.
struct Bench {
  Bench(const std::string& directory, LowerKind kind, const std::string& siltfs);

  const LowerKind kind;
  const std::string lower;  // the mountpoint of the lower file system
  const std::string scratch;
  const Product product;
  FuseDisk disk;
};

struct RecordingOptions {
  unsigned sessions = 2;
  unsigned writers = 4;
  uint64_t session_milliseconds = 700;
  std::vector<std::string> environment;  // of the daemon
};

// Runs the load.
class Load {
 public:
  Load(Bench& bench, RecordingDevice& device, const RecordingOptions& options, uint64_t seed);
  ~Load();

  // Makes the lower file system and the store, and mounts both. Throws Failure.
  void Prepare();
  // Mounts the store, runs the load and `during` at the same time, and unmounts. The load ends when
  // `during` returns. With `may_fail`, calls of the writers may fail.
  void RunSession(bool may_fail, const std::function<void(const std::function<bool()>&)>& during);
  // Unmounts the lower file system and detaches the loop device.
  void TakeDown();
  LowerMount* lower() { return mount_.get(); }

  Recording recording;

 private:
  class Worker;
  void Mount();
  void Maintain(killtest::RoundState& round, Session& session, uint64_t seed, bool may_fail);

  Bench& bench_;
  RecordingDevice& device_;
  const RecordingOptions options_;
  Random random_;
  std::shared_ptr<const Bytes> pool_;
  std::vector<killtest::Tree> bases_;
  std::unique_ptr<LoopDevice> loop_;
  std::unique_ptr<LowerMount> mount_;
};

// Returns, as text, a writer's last operations before a cut and their promises.
std::string DescribePromises(const Session& session, const WriterRecord& writer, uint64_t position);

// Returns the part of the writer's history that counts for a cut after `position` records.
killtest::History HistoryAt(const Session& session, const WriterRecord& writer, uint64_t position);

}  // namespace siltfs::blocktest

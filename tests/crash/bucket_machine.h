// A machine that has a store in a bucket, for the campaign of bucket_sequence.h, and a model of its
// files: the state after each step that the machine has made.
//
// Thread-safety: one thread. Ownership: the network must outlive the machine.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/shipping/bucket_session.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "tests/crash/bucket_network.h"

namespace siltfs::testing {

// The files in the root directory: the seed and the size of each content.
using BucketFiles = std::map<std::string, std::pair<uint64_t, size_t>>;

struct BucketMachineOptions {
  bool wait_for_bucket = false;  // sync=bucket
  bool threads = false;          // that ship and upload
  uint32_t segment_bytes = 64u << 10;
  uint64_t cache_bytes = 512u << 10;
  uint64_t checkpoint_bytes = 20000;
  uint64_t queue_bytes = 1u << 20;
};

class BucketMachine {
 public:
  // `number` tells the writers apart.
  BucketMachine(BucketNetwork& network, unsigned number, const BucketMachineOptions& options);
  ~BucketMachine() { Crash(); }
  BucketMachine(const BucketMachine&) = delete;
  BucketMachine& operator=(const BucketMachine&) = delete;

  // Makes an empty store.
  Status Make();
  // Begins with an empty disk, and restores the store to it. The restored state is the first one of
  // the history. With `take_over`, a writer that still lives is fenced before.
  Status Restore(bool take_over = false);
  // Opens the store. A machine that was restored or has crashed learns its state from the files.
  Status Open();
  // Ends the process, as a kill does.
  void Crash();
  // Closes the file system cleanly, then ends the process.
  Status Close();
  bool is_open() const { return fs_ != nullptr; }

  // Changes a file. The change counts from the next Sync on.
  Status Step(Random& random);
  Status Sync();
  Status Maintain(uint64_t choice);
  // Without threads: ships the commits, or lets the uploads and deletions go on.
  Status Ship();
  void RunBackground();
  // With threads: returns when the bucket has all commits.
  Status AwaitBucket();
  // fsck with all data; the store must be closed. Returns the findings.
  Result<std::string> Check();
  Result<BucketFiles> ReadAll();

  // --- The history. State 0 is the one at the beginning.
  size_t last() const { return states_.size() - 1; }
  // The last state that a Sync has acknowledged, and the last one acknowledged while the machine
  // promised sync=bucket.
  size_t synced() const { return synced_; }
  size_t acknowledged_in_bucket() const { return acknowledged_in_bucket_; }
  // The last state that the bucket has, as the lag says now.
  size_t reported_in_bucket();
  // The newest state from `least` on with these files, or nothing.
  std::optional<size_t> Find(const BucketFiles& files, size_t least) const;
  // This state has survived a crash, and those behind it have not. The store is open.
  void Survived(size_t state);
  // The history begins again with these files.
  void BeginHistory(BucketFiles files);

  SimEnv& env() { return *env_; }
  BucketNetwork::Client& client() { return *client_; }
  const std::string& host() const { return shipping_.writer.host; }
  bool fenced() const { return session_ != nullptr && session_->lag().fenced; }

 private:
  BucketOptions Bucket() const;

  BucketNetwork& network_;
  const BucketMachineOptions options_;
  ShippingOptions shipping_;
  std::unique_ptr<BucketNetwork::Client> client_;
  std::unique_ptr<SimEnv> env_;
  std::unique_ptr<BucketSession> session_;
  std::unique_ptr<FileSystem> fs_;
  uint64_t disks_ = 0;

  std::vector<BucketFiles> states_{{}};
  std::vector<uint64_t> commits_{0};  // the commit that has each state; 0 if it is not known
  size_t synced_ = 0;
  size_t acknowledged_in_bucket_ = 0;
  size_t reported_in_bucket_ = 0;
};

}  // namespace siltfs::testing

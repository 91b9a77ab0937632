#include "tests/crash/bucket_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "fs/check/check_store.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/shipping/restore_store.h"
#include "store/superblock/superblock.h"
#include "tests/crash/sequence.h"

namespace siltfs::testing {
namespace {

constexpr const char* kStore = "/store";
constexpr const char* kCache = "/cache";
constexpr Caller kCaller{.uid = 1000, .gid = 1000};
constexpr size_t kHead = 8;
constexpr size_t kPiece = 128u << 10;

// The content begins with its seed. Most contents consist of the same words, so that recompression
// replaces segments.
Bytes ContentOf(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  if (seed % 4 != 0) {
    Bytes words(64 * 24);
    Random(7).Fill(words);
    for (size_t i = size; i-- > 0;) bytes[i] = words[bytes[i / 24] % 64 * 24 + i % 24];
  }
  for (size_t i = 0; i < kHead && i < size; ++i) bytes[i] = static_cast<uint8_t>(seed >> 8 * i);
  return bytes;
}

}  // namespace

BucketMachine::BucketMachine(BucketNetwork& network, unsigned number,
                             const BucketMachineOptions& options)
    : network_(network),
      options_(options),
      client_(network.Connect()),
      env_(std::make_unique<SimEnv>(number)),
      disks_(uint64_t{number} << 16) {
  shipping_.writer.id[0] = static_cast<uint8_t>(number);
  shipping_.writer.id[1] = static_cast<uint8_t>(number >> 8);
  shipping_.writer.host = fmt::format("machine{}", number);
  shipping_.background = options.threads;
  shipping_.wait_for_bucket = options.wait_for_bucket;
  shipping_.checkpoint_bytes = options.checkpoint_bytes;
  shipping_.queue_bytes = options.queue_bytes;
  shipping_.interval = std::chrono::milliseconds(1);
  shipping_.close_timeout = std::chrono::milliseconds(200);
}

BucketOptions BucketMachine::Bucket() const {
  BucketOptions bucket;
  bucket.directory = kCache;
  bucket.cache_bytes = options_.cache_bytes;
  bucket.upload_threads = options_.threads ? 2 : 0;
  bucket.fetch_threads = 0;
  bucket.bucket_timeout = std::chrono::seconds(options_.threads ? 1 : 0);
  bucket.room_timeout = std::chrono::seconds(options_.threads ? 1 : 0);
  return bucket;
}

Status BucketMachine::Make() {
  MakeStoreOptions options;
  options.path = kStore;
  options.index_memory = 1u << 20;
  SILTFS_RETURN_IF_ERROR(MakeStore(*env_, options));
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state, ReadSuperblock(*env_, kStore));
  state.superblock.segment_bytes = options_.segment_bytes;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(*env_, kStore, state.superblock));
  SILTFS_RETURN_IF_ERROR(env_->CreateDirectory(kCache));
  return env_->SyncDirectory("/");
}

Status BucketMachine::Restore(bool take_over) {
  Crash();
  env_ = std::make_unique<SimEnv>(++disks_);
  RestoreStoreOptions options;
  options.store = kStore;
  options.bucket_directory = kCache;
  options.restore.reads_ahead = shipping_.background;
  if (take_over) options.take_over = shipping_.writer;
  return RestoreStore(*env_, *client_, options).status();
}

Status BucketMachine::Open() {
  Crash();
  BucketSessionOptions options{kStore, shipping_, Bucket(), std::chrono::seconds(1)};
  session_ = std::make_unique<BucketSession>(*env_, *client_, std::move(options));
  FileSystemOptions open;
  open.store = kStore;
  open.segments = &session_->segments();
  open.metadata_layer = [this](std::unique_ptr<KvStore> kv) {
    return session_->Layer(std::move(kv));
  };
  open.commit_interval = std::chrono::hours(1);
  open.worker_threads = 1;
  open.readahead_threads = 0;
  auto opened = FileSystem::Open(*env_, std::move(open));
  if (!opened.ok()) {
    session_ = nullptr;
    return opened.status();
  }
  fs_ = std::move(opened).value();
  return Status::Ok();
}

void BucketMachine::Crash() {
  fs_ = nullptr;
  session_ = nullptr;
}

Status BucketMachine::Close() {
  const Status closed = CloseStore(*fs_);
  if (closed.ok()) synced_ = last();
  Crash();
  return closed;
}

Status BucketMachine::Step(Random& random) {
  BucketFiles next = states_.back();
  const std::string name = fmt::format("f{}", random.Below(8));
  const bool existed = next.erase(name) > 0;
  const bool remove = existed && random.OneIn(3);
  const uint64_t seed = random.Below(1u << 30) + 1;
  const size_t size = kHead + random.Below(random.OneIn(4) ? 200000 : 20000);
  if (!remove) next[name] = {seed, size};
  states_.push_back(std::move(next));
  commits_.push_back(0);
  if (existed) SILTFS_RETURN_IF_ERROR(fs_->Unlink(kRootInode, name));
  if (remove) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const Attributes made, fs_->CreateFile(kRootInode, name, 0644, kCaller));
  const Bytes content = ContentOf(seed, size);
  Status written;
  for (size_t at = 0; at < size && written.ok(); at += kPiece) {
    written =
        fs_->Write(made.inode, at, ByteView(content).subspan(at, std::min(kPiece, size - at)));
  }
  fs_->ReleaseFile(made.inode);
  fs_->Forget(made.inode, 1);
  return written;
}

Status BucketMachine::Sync() {
  SILTFS_RETURN_IF_ERROR(fs_->SyncAll());
  const uint64_t newest = session_->lag().newest;
  for (size_t i = synced_ + 1; i < states_.size(); ++i) commits_[i] = newest;
  synced_ = last();
  if (options_.wait_for_bucket) acknowledged_in_bucket_ = last();
  return Status::Ok();
}

Status BucketMachine::Maintain(uint64_t choice) {
  if (choice == 0) return fs_->maintenance().Recompress().status();
  return fs_->maintenance().CollectGarbage(false).status();
}

Status BucketMachine::Ship() {
  return options_.threads ? Status::Ok() : session_->shipper().Ship();
}

void BucketMachine::RunBackground() {
  if (!options_.threads)
    session_->bucket()->RunBackground().IgnoreError("the network or the device may fail");
}

Status BucketMachine::AwaitBucket() {
  Shipper& shipper = session_->shipper();
  return shipper.WaitShipped(shipper.Position(), std::chrono::minutes(1));
}

Result<std::string> BucketMachine::Check() {
  BucketOptions bucket = Bucket();
  bucket.upload_threads = 0;
  BucketSegmentStore segments(*env_, *client_, bucket);
  std::string findings;
  CheckOptions options;
  options.store = kStore;
  options.segments = &segments;
  options.data = true;
  options.on_finding = [&](const Finding& finding) {
    findings += finding.code + ": " + finding.message + "\n";
  };
  SILTFS_RETURN_IF_ERROR(CheckStore(*env_, options).status());
  return findings;
}

Result<BucketFiles> BucketMachine::ReadAll() {
  std::vector<std::string> names;
  SILTFS_RETURN_IF_ERROR(fs_->ReadDirectory(kRootInode, 0, [&](const DirectoryRecord& record) {
    if (record.name != "." && record.name != "..") names.emplace_back(record.name);
    return true;
  }));
  BucketFiles files;
  for (const std::string& name : names) {
    SILTFS_ASSIGN_OR_RETURN(const Attributes found, fs_->Lookup(kRootInode, name));
    Bytes content(found.size);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, fs_->Read(found.inode, 0, content));
    fs_->Forget(found.inode, 1);
    uint64_t seed = 0;
    for (size_t i = 0; i < kHead && i < got; ++i) seed |= uint64_t{content[i]} << 8 * i;
    if (got != content.size() || content != ContentOf(seed, content.size()))
      return Status(StatusCode::kCorruption, "the file has other bytes").At(name);
    files[name] = {seed, content.size()};
  }
  return files;
}

size_t BucketMachine::reported_in_bucket() {
  if (session_ == nullptr || fs_ == nullptr) return reported_in_bucket_;
  const uint64_t shipped = session_->lag().shipped;
  for (size_t i = reported_in_bucket_ + 1; i < states_.size(); ++i) {
    if (commits_[i] > 0 && commits_[i] <= shipped) reported_in_bucket_ = i;
  }
  return reported_in_bucket_;
}

std::optional<size_t> BucketMachine::Find(const BucketFiles& files, size_t least) const {
  for (size_t i = states_.size(); i-- > least;) {
    if (states_[i] == files) return i;
  }
  return std::nullopt;
}

void BucketMachine::Survived(size_t state) {
  states_.resize(state + 1);
  commits_.resize(state + 1);
  // Commits that were not acknowledged have survived, too.
  const uint64_t newest = session_->lag().newest;
  for (size_t i = 1; i <= state; ++i) {
    if (commits_[i] == 0) commits_[i] = newest;
  }
  synced_ = state;
}

void BucketMachine::BeginHistory(BucketFiles files) {
  states_ = {std::move(files)};
  commits_ = {0};
  synced_ = acknowledged_in_bucket_ = reported_in_bucket_ = 0;
}

}  // namespace siltfs::testing

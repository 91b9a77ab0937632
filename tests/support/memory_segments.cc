#include "tests/support/memory_segments.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "store/base/coding.h"
#include "store/base/thread_annotations.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "tests/support/bucket_device.h"
#include "tests/support/catch.h"
#include "tests/support/fault_env.h"

namespace siltfs::testing {
namespace {

// The paths of the first 1,024 segments in a store's directory contain this text. Segments in
// memory have it in their names, too, so that tests can choose calls on segments by one text.
constexpr const char* kName = "segments/000000";

// A change of a segment in memory, or of an object. The device's trace has a mark with the number
// of the change, so that a replay of the trace can repeat the change at this place.
struct Change {
  SegmentId id = kNoSegment;
  std::string key;                     // of an object; then there is no id
  std::optional<std::string> content;  // empty: removed
};

Env& DeviceOf(Env& env) {
  auto* const fault_env = dynamic_cast<FaultEnv*>(&env);
  return fault_env == nullptr ? env : DeviceOf(fault_env->wrapped());
}

// Held while a segment in memory changes and its change is recorded, which is one moment for
// ForkAndTraceDevice.
Mutex& ChangeMutex() {
  static Mutex mutex;
  return mutex;
}
Mutex& LogMutex() {
  static Mutex mutex;
  return mutex;
}
std::vector<Change>& Changes() {
  static std::vector<Change> changes;
  return changes;
}

void Record(Env& device, Change change) {
  auto* const sim = dynamic_cast<SimEnv*>(&device);
  if (sim == nullptr) return;
  MutexLock lock(LogMutex());
  Changes().push_back(std::move(change));
  sim->Mark(AsBytes(Encoder().U64(Changes().size()).Take()));
}

// A segment in memory. FaultEnv counts its reads, and lets them fail, like reads of files.
class NotedFile final : public ReadableFile {
 public:
  NotedFile(const FaultEnv* env, std::unique_ptr<const ReadableFile> file)
      : env_(env), file_(std::move(file)) {}
  const std::string& path() const override { return file_->path(); }
  Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
    Status noted = env_->Note(FaultEnv::Call::kRead, path());
    if (!noted.ok()) return Status(noted.code(), std::string(noted.cause())).At(path(), offset);
    return file_->Read(offset, out);
  }
  Result<uint64_t> Size() const override { return file_->Size(); }

 private:
  const FaultEnv* const env_;
  const std::unique_ptr<const ReadableFile> file_;
};

// Gives an Env access to the segments that are in memory for its device. If the Env is a FaultEnv,
// it notes the reads. If the device is a SimEnv, its trace gets a mark for each change.
class SegmentsThroughEnv final : public SegmentStore {
 public:
  SegmentsThroughEnv(Env& env, MemorySegmentStore& memory)
      : device_(DeviceOf(env)), notes_(dynamic_cast<FaultEnv*>(&env)), memory_(memory) {}

  const std::string& name() const override { return memory_.name(); }
  std::string NameOf(SegmentId id) const override { return memory_.NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override { return memory_.IdOf(name); }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override {
    SILTFS_ASSIGN_OR_RETURN(auto file, memory_.Open(id));
    if (notes_ == nullptr) return file;
    return std::unique_ptr<const ReadableFile>(
        std::make_unique<NotedFile>(notes_, std::move(file)));
  }
  uint64_t UnansweredReads() const override { return memory_.UnansweredReads(); }
  Status Put(SegmentId id, const SegmentSource& source) override {
    return Change(id, source, &MemorySegmentStore::Put);
  }
  Status Replace(SegmentId id, const SegmentSource& source) override {
    return Change(id, source, &MemorySegmentStore::Replace);
  }
  Status Remove(SegmentId id) override {
    MutexLock lock(ChangeMutex());
    SILTFS_RETURN_IF_ERROR(memory_.Remove(id));
    Record(device_, {.id = id, .key = {}, .content = std::nullopt});
    return Status::Ok();
  }
  Result<SegmentListing> List() override { return memory_.List(); }
  Result<SegmentListing> Recover() override { return memory_.Recover(); }

 private:
  // Records the change first, because `change` removes the source. The removal is a change of the
  // device, and so a later record of the trace.
  Status Change(SegmentId id, const SegmentSource& source,
                Status (MemorySegmentStore::*change)(SegmentId, const SegmentSource&)) {
    MutexLock lock(ChangeMutex());
    SILTFS_ASSIGN_OR_RETURN(std::string content, source.Read());
    Record(device_, {.id = id, .key = {}, .content = std::move(content)});
    return (memory_.*change)(id, source);
  }

  Env& device_;
  const FaultEnv* const notes_;
  MemorySegmentStore& memory_;
};

// The same for segments in a bucket. The changes of objects are recorded by the BucketDevice.
class BucketThroughEnv final : public SegmentStore {
 public:
  BucketThroughEnv(Env& env, std::shared_ptr<BucketDevice> bucket)
      : notes_(dynamic_cast<FaultEnv*>(&env)),
        bucket_(std::move(bucket)),
        name_(bucket_->Store()->name()) {}

  const std::string& name() const override { return name_; }
  std::string NameOf(SegmentId id) const override { return bucket_->Store()->NameOf(id); }
  std::optional<SegmentId> IdOf(std::string_view name) const override {
    return bucket_->Store()->IdOf(name);
  }
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override {
    SILTFS_ASSIGN_OR_RETURN(auto file, bucket_->Store()->Open(id));
    if (notes_ == nullptr) return file;
    return std::unique_ptr<const ReadableFile>(
        std::make_unique<NotedFile>(notes_, std::move(file)));
  }
  uint64_t UnansweredReads() const override { return bucket_->Store()->UnansweredReads(); }
  Status Put(SegmentId id, const SegmentSource& source) override {
    return Finish(bucket_->Store()->Put(id, source));
  }
  Status Replace(SegmentId id, const SegmentSource& source) override {
    return Finish(bucket_->Store()->Replace(id, source));
  }
  Status Remove(SegmentId id) override { return Finish(bucket_->Store()->Remove(id)); }
  Result<SegmentListing> List() override { return bucket_->Store()->List(); }
  Result<SegmentListing> Recover() override { return bucket_->Store()->Recover(); }
  Status FinishPuts(const std::function<bool(SegmentId)>& is_sealed) override {
    return Finish(bucket_->Store()->FinishPuts(is_sealed));
  }

 private:
  Status Finish(Status changed) {
    bucket_->Work();
    return changed;
  }

  const FaultEnv* const notes_;
  const std::shared_ptr<BucketDevice> bucket_;
  const std::string name_;
};

struct Device {
  std::shared_ptr<MemorySegmentStore> memory;
  std::shared_ptr<BucketDevice> bucket;
  std::map<const Env*, std::unique_ptr<SegmentStore>> through;
};

Mutex& RegistryMutex() {
  static Mutex mutex;
  return mutex;
}
std::map<const Env*, Device>& Registry() {
  static std::map<const Env*, Device> registry;
  return registry;
}

std::shared_ptr<MemorySegmentStore> MemoryOf(Env& env, const std::string& store = "/store") {
  MutexLock lock(RegistryMutex());
  Device& device = Registry()[&DeviceOf(env)];
  if (!device.memory) {
    device.memory = std::make_shared<MemorySegmentStore>(
        MemorySegmentOptions{.name = JoinPath(store, kName), .wait = {}});
  }
  return device.memory;
}

BucketDevice::Changed RecordObjectsOf(Env& device) {
  return [&device](const std::string& key, std::optional<std::string> content) {
    Record(device, {.id = kNoSegment, .key = key, .content = std::move(content)});
  };
}

std::shared_ptr<BucketDevice> BucketOf(Env& env, const std::string& store = "/store") {
  Env& on = DeviceOf(env);
  MutexLock lock(RegistryMutex());
  Device& device = Registry()[&on];
  if (!device.bucket) {
    device.bucket = std::make_shared<BucketDevice>(on, store, RecordObjectsOf(on));
  }
  return device.bucket;
}

bool Wants(const char* kind) {
  const char* const wanted = std::getenv("SILTFS_TEST_SEGMENT_STORE");
  return wanted != nullptr && std::strcmp(wanted, kind) == 0;
}

}  // namespace

bool KeepsSegmentsInMemory() { return Wants("memory"); }
bool KeepsSegmentsInBucket() { return Wants("bucket"); }

SegmentStore* SealedSegments(Env& env) {
  if (KeepsSegmentsInBucket()) {
    auto bucket = BucketOf(env);
    MutexLock lock(RegistryMutex());
    auto& through = Registry()[&DeviceOf(env)].through[&env];
    if (!through) through = std::make_unique<BucketThroughEnv>(env, std::move(bucket));
    return through.get();
  }
  if (!KeepsSegmentsInMemory()) return nullptr;
  const auto memory = MemoryOf(env);
  MutexLock lock(RegistryMutex());
  auto& through = Registry()[&DeviceOf(env)].through[&env];
  if (!through) through = std::make_unique<SegmentsThroughEnv>(env, *memory);
  return through.get();
}

MemorySegmentStore* MemorySegments(Env& env) {
  return KeepsSegmentsInMemory() ? MemoryOf(env).get() : nullptr;
}

std::unique_ptr<SegmentStore> SegmentsOf(Env& env, const std::string& store) {
  return OpenSegmentStore(env, store, SealedSegments(env));
}

void ForgetSegments(Env& env, const std::string& store) {
  if (!KeepsSegmentsInMemory() && !KeepsSegmentsInBucket()) return;
  Device forgotten;  // destroyed without the lock
  {
    MutexLock lock(RegistryMutex());
    forgotten = std::move(Registry()[&DeviceOf(env)]);
    Registry().erase(&DeviceOf(env));
  }
  if (KeepsSegmentsInBucket()) {
    BucketOf(env, store)->Clear();
  } else {
    MemoryOf(env, store);
  }
}

namespace {

// The changes of segments must be held up meanwhile, or there must be none.
std::unique_ptr<SimEnv> WithSegments(SimEnv& device, std::unique_ptr<SimEnv> fork) {
  if (KeepsSegmentsInBucket()) {
    auto bucket = BucketOf(device)->Fork(*fork, RecordObjectsOf(*fork));
    MutexLock lock(RegistryMutex());
    Registry()[fork.get()] = {nullptr, std::move(bucket), {}};
    return fork;
  }
  if (!KeepsSegmentsInMemory()) return fork;
  const auto memory = MemoryOf(device);
  MutexLock lock(RegistryMutex());
  Registry()[fork.get()] = {memory->Fork(), nullptr, {}};
  return fork;
}

}  // namespace

std::unique_ptr<SimEnv> ForkDevice(SimEnv& device) { return WithSegments(device, device.Fork()); }

std::unique_ptr<SimEnv> ForkAndTraceDevice(SimEnv& device) {
  MutexLock lock(KeepsSegmentsInBucket() ? BucketOf(device)->change_mutex() : ChangeMutex());
  return WithSegments(device, device.ForkAndTrace());
}

Status ReplayRecord(SimEnv& device, const SimRecord& record) {
  SILTFS_RETURN_IF_ERROR(device.Replay(record));
  const bool in_bucket = KeepsSegmentsInBucket();
  if ((!in_bucket && !KeepsSegmentsInMemory()) || record.kind != SimRecord::Kind::kMark)
    return Status::Ok();
  Decoder in(record.data);
  const uint64_t number = in.U64();
  const auto memory = in_bucket ? nullptr : MemoryOf(device);
  const auto bucket = in_bucket ? BucketOf(device) : nullptr;
  MutexLock lock(LogMutex());
  const Change& change = Changes().at(number - 1);
  if (in_bucket) {
    bucket->Apply(change.key, change.content);
    return Status::Ok();
  }
  if (!change.content) return memory->Remove(change.id);
  memory->SetContent(change.id, *change.content);
  return Status::Ok();
}

std::string SegmentContent(Env& env, const std::string& store, SegmentId id) {
  const auto file = SegmentsOf(env, store)->Open(id);
  REQUIRE_OK(file);
  const auto size = (*file)->Size();
  REQUIRE_OK(size);
  std::string content(*size, '\0');
  REQUIRE_OK(ReadExactly(**file, 0, {reinterpret_cast<uint8_t*>(content.data()), content.size()}));
  return content;
}

void ChangeSegment(Env& env, const std::string& store, SegmentId id,
                   const std::function<void(std::string& content)>& change) {
  std::string content = SegmentContent(env, store, id);
  change(content);
  if (MemorySegmentStore* const memory = MemorySegments(env);
      memory != nullptr && memory->Content(id).ok()) {
    memory->SetContent(id, std::move(content));
    return;
  }
  if (KeepsSegmentsInBucket() && SealedSegments(env)->Open(id).ok()) {
    // An object is immutable and verified, so damage comes with a content of its own.
    const std::string path = SegmentPath(store, id) + ".changed";
    REQUIRE_OK(ReplaceFile(env, path, AsBytes(content)));
    REQUIRE_OK(SealedSegments(env)->Replace(id, {env, path}));
    return;
  }
  const auto file = env.OpenFile(SegmentPath(store, id), {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Truncate(content.size()));
  REQUIRE_OK((*file)->Write(0, AsBytes(content)));
  REQUIRE_OK((*file)->Sync());
}

void FlipStoredByte(Env& env, const std::string& name, uint64_t offset) {
  if (MemorySegmentStore* const memory = MemorySegments(env)) {
    const auto id = memory->IdOf(name);
    if (id && memory->Content(*id).ok()) {
      REQUIRE_OK(memory->Corrupt(*id, offset, 1));
      return;
    }
  }
  auto file = env.OpenFile(name, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  Bytes byte(1);
  REQUIRE_OK(ReadExactly(**file, offset, byte));
  byte[0] ^= 0x40;
  REQUIRE_OK((*file)->Write(offset, byte));
  REQUIRE_OK((*file)->Sync());
}

void FailReplacement(SimEnv& device) {
  if (MemorySegmentStore* const memory = MemorySegments(device)) {
    memory->FailCall({.call = SegmentCall::kReplace});
  } else {
    device.FailCall({.calls = SimCall::kRename, .path_part = ".seg.new"});
  }
}

void LoseSegment(Env& env, const std::string& store, SegmentId id) {
  REQUIRE_OK(SegmentsOf(env, store)->Remove(id));
}

}  // namespace siltfs::testing

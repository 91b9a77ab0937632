#include "tests/support/bucket_device.h"

#include <utility>

#include "store/bucket/bucket_names.h"
#include "store/env/files.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// A part of the names of segments, as in memory_segments.cc.
constexpr const char* kName = "segments/000000";
constexpr uint64_t kCacheBytes = uint64_t{512} << 10;

uint64_t PowerCuts(Env& env) {
  auto* const sim = dynamic_cast<SimEnv*>(&env);
  return sim == nullptr ? 0 : sim->PowerCuts();
}

BucketOptions OptionsOf(const std::string& store) {
  return {.directory = store + ".bucket",
          .cache_bytes = kCacheBytes,
          .upload_threads = 0,
          .fetch_threads = 0,
          .bucket_timeout = std::chrono::nanoseconds(0),
          .room_timeout = std::chrono::nanoseconds(0)};
}

}  // namespace

// Reports the changes of an object store. Objects are also read and listed through it.
class BucketDevice::Observed final : public ObjectStore {
 public:
  Observed(MemoryObjectStore& to, Changed changed, Mutex& mutex)
      : to_(to), changed_(std::move(changed)), mutex_(mutex) {}

  const std::string& name() const override { return to_.name(); }
  Result<std::string> PutFile(const std::string& key, const ReadableFile& content,
                              const PutCondition& condition) override {
    MutexLock lock(mutex_);
    return Report(key, to_.PutFile(key, content, condition));
  }
  Result<std::string> Put(const std::string& key, ByteView content,
                          const PutCondition& condition) override {
    MutexLock lock(mutex_);
    return Report(key, to_.Put(key, content, condition));
  }
  Result<Bytes> Get(const std::string& key, uint64_t limit, std::string* version) override {
    return to_.Get(key, limit, version);
  }
  Result<size_t> Read(const std::string& key, std::string_view version, uint64_t offset,
                      MutableByteView out) override {
    return to_.Read(key, version, offset, out);
  }
  Result<ObjectInfo> Stat(const std::string& key) override { return to_.Stat(key); }
  Status Remove(const std::string& key) override {
    MutexLock lock(mutex_);
    SILTFS_RETURN_IF_ERROR(to_.Remove(key));
    if (changed_) changed_(key, std::nullopt);
    return Status::Ok();
  }
  Result<ObjectPage> List(const std::string& prefix, const std::string& after,
                          size_t limit) override {
    return to_.List(prefix, after, limit);
  }
  void Interrupt() override { to_.Interrupt(); }
  void InterruptReads() override { to_.InterruptReads(); }
  ObjectStoreCounters Counters() const override { return to_.Counters(); }

 private:
  Result<std::string> Report(const std::string& key, Result<std::string> put) {
    if (put.ok() && changed_) changed_(key, to_.Content(key).value());
    return put;
  }

  MemoryObjectStore& to_;
  const Changed changed_;
  Mutex& mutex_;
};

BucketDevice::BucketDevice(Env& env, const std::string& store, Changed changed)
    : env_(env),
      store_path_(store),
      changed_(std::move(changed)),
      memory_(std::make_shared<MemoryObjectStore>(
          MemoryObjectOptions{.name = JoinPath(store, kName), .wait = {}})),
      objects_(std::make_unique<Observed>(*memory_, changed_, change_mutex_)) {}

BucketDevice::~BucketDevice() = default;

std::shared_ptr<BucketSegmentStore> BucketDevice::Store() {
  MutexLock lock(mutex_);
  const uint64_t cuts = PowerCuts(env_);
  if (!store_ || cuts != power_cuts_) {
    store_ = std::make_shared<BucketSegmentStore>(env_, *objects_, OptionsOf(store_path_));
    power_cuts_ = cuts;
  }
  return store_;
}

void BucketDevice::Work() {
  Store()->RunBackground().IgnoreError("the device may be failing or without power");
}

void BucketDevice::Apply(const std::string& key, const std::optional<std::string>& content) {
  if (content) {
    memory_->SetContent(key, *content);
  } else {
    REQUIRE_OK(memory_->Remove(key));
  }
}

std::shared_ptr<BucketDevice> BucketDevice::Fork(Env& env, Changed changed) const {
  auto fork = std::make_shared<BucketDevice>(env, store_path_, std::move(changed));
  for (const std::string& key : memory_->Keys())
    fork->memory_->SetContent(key, memory_->Content(key).value());
  return fork;
}

void BucketDevice::Clear() {
  const std::string directory = OptionsOf(store_path_).directory;
  for (const std::string& part : {FilesDirectory(directory), RemovedDirectory(directory)}) {
    const auto entries = env_.ListDirectory(part);
    if (!entries.ok()) continue;
    for (const DirectoryEntry& entry : *entries)
      REQUIRE_OK(env_.RemoveFile(JoinPath(part, entry.name)));
  }
}

}  // namespace siltfs::testing

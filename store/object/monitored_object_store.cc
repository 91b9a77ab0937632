#include "store/object/monitored_object_store.h"

namespace siltfs {
namespace {

bool HasNoAnswer(const Status& status) {
  return status.Is(StatusCode::kIoError) || status.Is(StatusCode::kAccessDenied);
}

bool IsFailure(const Status& status) {
  return HasNoAnswer(status) || status.Is(StatusCode::kNoSpace) ||
         status.Is(StatusCode::kCorruption);
}

}  // namespace

void MonitoredObjectStore::Note(const Status& status, Clock::time_point began) {
  if (status.Is(StatusCode::kInterrupted)) return;
  MutexLock lock(mutex_);
  if (IsFailure(status)) {
    last_error_ = status.ToString();
    last_error_ns_ = env_.NowNanoseconds();
  }
  if (HasNoAnswer(status)) {
    if (!is_out_) out_since_ = began;
    is_out_ = true;
  } else if (is_out_) {
    is_out_ = false;
    past_outages_ += Clock::now() - out_since_;
  }
}

ObjectStoreHealth MonitoredObjectStore::Health() const {
  MutexLock lock(mutex_);
  ObjectStoreHealth health;
  health.last_error = last_error_;
  health.last_error_ns = last_error_ns_;
  health.outage = past_outages_;
  if (is_out_) {
    health.is_out = true;
    health.present_outage = Clock::now() - out_since_;
    health.outage += health.present_outage;
  }
  return health;
}

Result<std::string> MonitoredObjectStore::PutFile(const std::string& key,
                                                  const ReadableFile& content,
                                                  const PutCondition& condition) {
  const auto began = Clock::now();
  auto result = base_->PutFile(key, content, condition);
  Note(result.status(), began);
  return result;
}

Result<std::string> MonitoredObjectStore::Put(const std::string& key, ByteView content,
                                              const PutCondition& condition) {
  const auto began = Clock::now();
  auto result = base_->Put(key, content, condition);
  Note(result.status(), began);
  return result;
}

Result<Bytes> MonitoredObjectStore::Get(const std::string& key, uint64_t limit,
                                        std::string* version) {
  const auto began = Clock::now();
  auto result = base_->Get(key, limit, version);
  Note(result.status(), began);
  return result;
}

Result<size_t> MonitoredObjectStore::Read(const std::string& key, std::string_view version,
                                          uint64_t offset, MutableByteView out) {
  const auto began = Clock::now();
  auto result = base_->Read(key, version, offset, out);
  Note(result.status(), began);
  return result;
}

Result<ObjectInfo> MonitoredObjectStore::Stat(const std::string& key) {
  const auto began = Clock::now();
  auto result = base_->Stat(key);
  Note(result.status(), began);
  return result;
}

Status MonitoredObjectStore::Remove(const std::string& key) {
  const auto began = Clock::now();
  Status result = base_->Remove(key);
  Note(result, began);
  return result;
}

Result<ObjectPage> MonitoredObjectStore::List(const std::string& prefix, const std::string& after,
                                              size_t limit) {
  const auto began = Clock::now();
  auto result = base_->List(prefix, after, limit);
  Note(result.status(), began);
  return result;
}

}  // namespace siltfs

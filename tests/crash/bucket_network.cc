#include "tests/crash/bucket_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "store/env/files.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLongestDelay = 400;  // in attempts

// As many as S3ObjectStore makes.
constexpr unsigned kAttemptsForWrongBytes = 4;

template <typename Answer>
const Status& StatusOf(const Answer& answer) {
  if constexpr (std::is_same_v<Answer, Status>) {
    return answer;
  } else {
    return answer.status();
  }
}

Status NoAnswer(const std::string& key) {
  return Status(StatusCode::kIoError, "the bucket does not answer").At(key);
}

}  // namespace

std::unique_ptr<BucketNetwork::Client> BucketNetwork::Connect() {
  return std::make_unique<Client>(*this);
}

void BucketNetwork::SetFaults(const NetworkFaults& faults) {
  MutexLock lock(mutex_);
  faults_ = faults;
}

std::string BucketNetwork::violations() const {
  MutexLock lock(mutex_);
  return violations_;
}

uint64_t BucketNetwork::delayed_effects() const {
  MutexLock lock(mutex_);
  return delayed_effects_;
}

unsigned BucketNetwork::attempts() const {
  MutexLock lock(mutex_);
  return faults_.attempts;
}

void BucketNetwork::Delay(Delayed request) {
  request.due = attempts_made_ + 1 + random_.Below(random_.OneIn(4) ? kLongestDelay : 10);
  delayed_.push_back(std::move(request));
}

// Also lets the delayed requests arrive whose time has come.
BucketNetwork::Fate BucketNetwork::Draw() {
  std::vector<Delayed> arriving;
  uint64_t number = 0;
  NetworkFaults faults;
  {
    MutexLock lock(mutex_);
    ++attempts_made_;
    const auto due = std::stable_partition(
        delayed_.begin(), delayed_.end(),
        [now = attempts_made_](const Delayed& request) { return request.due > now; });
    std::move(due, delayed_.end(), std::back_inserter(arriving));
    delayed_.erase(due, delayed_.end());
    delayed_effects_ += arriving.size();
    number = random_.Below(1000);
    faults = faults_;
  }
  for (const Delayed& request : arriving) {
    if (request.removes) {
      objects_.Remove(request.key).IgnoreError("the object may be gone");
    } else {
      Apply(request.key, request.content, request.condition)
          .status()
          .IgnoreError("its condition may not hold any more");
    }
  }
  const auto takes = [&number](uint64_t rate) {
    if (number < rate) return true;
    number -= rate;
    return false;
  };
  if (takes(faults.lost_requests)) return Fate::kLostRequest;
  if (takes(faults.lost_answers)) return Fate::kLostAnswer;
  if (takes(faults.delayed)) return Fate::kDelayed;
  if (takes(faults.doubled)) return Fate::kDoubled;
  if (takes(faults.wrong_bodies)) return Fate::kWrongBody;
  return Fate::kNormal;
}

void BucketNetwork::Settle() {
  {
    MutexLock lock(mutex_);
    for (Delayed& request : delayed_) request.due = 0;
  }
  Draw();
}

Result<std::string> BucketNetwork::Apply(const std::string& key, const std::string& content,
                                         const PutCondition& condition) {
  auto put = objects_.Put(key, AsBytes(content), condition);
  if (put.ok() && key.starts_with(kLogPrefix)) NoteLog(key, content);
  return put;
}

void BucketNetwork::NoteLog(const std::string& key, const std::string& content) {
  const auto object = DecodeLogObject(AsBytes(content));
  MutexLock lock(mutex_);
  if (!object.ok()) {
    violations_ += fmt::format("{} is put with damage: {}\n", key, object.status().ToString());
    return;
  }
  const auto [writer, is_new] = writers_.try_emplace(object->epoch, object->writer);
  if (!is_new && writer->second != object->writer) {
    violations_ += fmt::format("{}: epoch {} has two writers, {} and {}\n", key, object->epoch,
                               writer->second.host, object->writer.host);
  }
}

Result<std::string> BucketNetwork::PutOnce(const std::string& key, const std::string& content,
                                           const PutCondition& condition, Fate fate) {
  if (fate == Fate::kDelayed || fate == Fate::kDoubled) {
    MutexLock lock(mutex_);
    Delay({0, false, key, content, condition});
  }
  if (fate == Fate::kLostRequest || fate == Fate::kDelayed) return NoAnswer(key);
  auto put = Apply(key, content, condition);
  if (fate == Fate::kLostAnswer) return NoAnswer(key);
  return put;
}

Status BucketNetwork::RemoveOnce(const std::string& key, Fate fate) {
  if (fate == Fate::kDelayed || fate == Fate::kDoubled) {
    MutexLock lock(mutex_);
    Delay({0, true, key, {}, {}});
  }
  if (fate == Fate::kLostRequest || fate == Fate::kDelayed) return NoAnswer(key);
  const Status removed = objects_.Remove(key);
  return fate == Fate::kLostAnswer ? NoAnswer(key) : removed;
}

template <typename Answer, typename Attempt>
Answer BucketNetwork::Client::Try(const std::string& key, const Attempt& attempt) {
  const unsigned attempts = network_.attempts();
  for (unsigned made = 1;; ++made) {
    if (interrupted_) return Status(StatusCode::kInterrupted, "the store is being closed").At(key);
    Answer answer = cut_ ? Answer(NoAnswer(key)) : attempt(network_.Draw(), made == 1);
    const bool failed =
        StatusOf(answer).Is(StatusCode::kIoError) || StatusOf(answer).Is(StatusCode::kCorruption);
    const bool wrong = StatusOf(answer).Is(StatusCode::kCorruption);
    if (!failed || made >= (wrong ? kAttemptsForWrongBytes : attempts)) return answer;
  }
}

Result<std::string> BucketNetwork::Client::PutFile(const std::string& key,
                                                   const ReadableFile& content,
                                                   const PutCondition& condition) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, content.Size());
  Bytes bytes(size);
  SILTFS_RETURN_IF_ERROR(ReadExactly(content, 0, bytes));
  return Put(key, bytes, condition);
}

Result<std::string> BucketNetwork::Client::Put(const std::string& key, ByteView content,
                                               const PutCondition& condition) {
  const std::string text(AsText(content));
  return Try<Result<std::string>>(key, [&](Fate fate, bool first) -> Result<std::string> {
    auto put = network_.PutOnce(key, text, condition, fate);
    const bool refused =
        put.status().Is(StatusCode::kAlreadyExists) || put.status().Is(StatusCode::kStale);
    if (first || !refused) return put;
    // An attempt whose answer was lost may have put it (ObjectStore::PutFile).
    const auto there = network_.objects_.Content(key);
    if (there.ok() && *there == text) {
      SILTFS_ASSIGN_OR_RETURN(const ObjectInfo info, network_.objects_.Stat(key));
      return info.version;
    }
    return put;
  });
}

Status BucketNetwork::Client::Remove(const std::string& key) {
  return Try<Status>(key, [&](Fate fate, bool) { return network_.RemoveOnce(key, fate); });
}

Result<Bytes> BucketNetwork::Client::Get(const std::string& key, uint64_t limit,
                                         std::string* version) {
  return Try<Result<Bytes>>(key, [&](Fate fate, bool) -> Result<Bytes> {
    if (fate == Fate::kWrongBody)
      return Status(StatusCode::kCorruption, "the object has another checksum").At(key);
    if (fate == Fate::kLostRequest || fate == Fate::kLostAnswer) return NoAnswer(key);
    return network_.objects_.Get(key, limit, version);
  });
}

Result<size_t> BucketNetwork::Client::Read(const std::string& key, std::string_view version,
                                           uint64_t offset, MutableByteView out) {
  return Try<Result<size_t>>(key, [&](Fate fate, bool) -> Result<size_t> {
    if (reads_interrupted_)
      return Status(StatusCode::kInterrupted, "reads of the bucket have ended").At(key);
    if (fate == Fate::kLostRequest || fate == Fate::kLostAnswer) return NoAnswer(key);
    SILTFS_ASSIGN_OR_RETURN(const size_t got, network_.objects_.Read(key, version, offset, out));
    if (fate == Fate::kWrongBody && got > 0) out[got / 2] ^= 1;  // only the caller can notice
    return got;
  });
}

Result<ObjectInfo> BucketNetwork::Client::Stat(const std::string& key) {
  return Try<Result<ObjectInfo>>(key, [&](Fate fate, bool) -> Result<ObjectInfo> {
    if (fate == Fate::kLostRequest || fate == Fate::kLostAnswer) return NoAnswer(key);
    return network_.objects_.Stat(key);
  });
}

Result<ObjectPage> BucketNetwork::Client::List(const std::string& prefix, const std::string& after,
                                               size_t limit) {
  return Try<Result<ObjectPage>>(prefix, [&](Fate fate, bool) -> Result<ObjectPage> {
    if (fate == Fate::kLostRequest || fate == Fate::kLostAnswer) return NoAnswer(prefix);
    return network_.objects_.List(prefix, after, limit);
  });
}

}  // namespace siltfs::testing

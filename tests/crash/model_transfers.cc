#include "tests/crash/model_transfers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "store/base/coding.h"

namespace siltfs::testing {
namespace {

constexpr uint8_t kEnd = 1;

// The states that streams refer to, of all models of the process.
class SentStates {
 public:
  static uint64_t Number(const std::shared_ptr<const ModelState>& state) {
    SentStates& all = All();
    const MutexLock lock(all.mutex_);
    std::erase_if(all.states_, [](const auto& numbered) { return numbered.second.expired(); });
    for (const auto& [number, known] : all.states_) {
      if (known.lock() == state) return number;
    }
    all.states_.emplace(++all.last_, state);
    return all.last_;
  }
  // Null for 0, and if the state exists no longer.
  static std::shared_ptr<const ModelState> Find(uint64_t number) {
    SentStates& all = All();
    const MutexLock lock(all.mutex_);
    const auto found = all.states_.find(number);
    return found == all.states_.end() ? nullptr : found->second.lock();
  }

 private:
  static SentStates& All() {
    static SentStates all;
    return all;
  }

  Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<const ModelState>> states_ SILTFS_GUARDED_BY(mutex_);
  uint64_t last_ SILTFS_GUARDED_BY(mutex_) = 0;
};

Result<Bytes> ReadAll(ByteSource& in) {
  Bytes all;
  Bytes some(64);
  while (true) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, in.Read(some));
    if (got == 0) return all;
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(got));
  }
}

Status Ended() { return {StatusCode::kInterrupted, "the stream ends too early"}; }

// Identifies what is sent.
std::string TokenOf(uint64_t state, uint64_t base) {
  return std::to_string(state) + "-" + std::to_string(base);
}

}  // namespace

Result<SendOutcome> ModelTransfers::Send(const SendRequest& request, ByteSink& out,
                                         const std::function<Status()>&) {
  const auto sent = snapshots_.FindModel(request.snapshot);
  if (!sent) return Status(StatusCode::kNotFound, "there is no such snapshot");
  uint64_t base_number = 0;
  if (request.base) {
    const auto base = snapshots_.FindModel(*request.base);
    if (!base) return Status(StatusCode::kNotFound, "there is no such base");
    if (base->number >= sent->number || base->lineage != sent->lineage)
      return Status(StatusCode::kInvalidArgument, "cannot be the base");
    base_number = SentStates::Number(base->state);
  }
  const uint64_t number = SentStates::Number(sent->state);
  if (!request.resume.empty() && request.resume != TokenOf(number, base_number))
    return Status(StatusCode::kInvalidArgument, "the token is of another transfer");
  Encoder begin;
  begin.U64(number).U64(base_number).Text16(request.snapshot);
  SILTFS_RETURN_IF_ERROR(out.Write(begin.view()));
  SILTFS_RETURN_IF_ERROR(out.Write(Encoder().U8(kEnd).view()));
  return SendOutcome{};
}

Result<ReceiveOutcome> ModelTransfers::Receive(const ReceiveRequest& request, ByteSource& in,
                                               const std::function<Status()>&) {
  SILTFS_ASSIGN_OR_RETURN(const Bytes stream, ReadAll(in));
  Decoder decoder(stream);
  const uint64_t number = decoder.U64();
  const uint64_t base_number = decoder.U64();
  const std::string sent_name(decoder.Text16());
  const auto state = SentStates::Find(number);
  if (!decoder.ok() || !state) return Ended();
  const std::string& name = request.name.empty() ? sent_name : request.name;
  if (snapshots_.FindReceived(state.get()) || snapshots_.FindModel(name))
    return Status(StatusCode::kAlreadyExists, "the store has the snapshot, or the name is taken");
  std::optional<ModelSnapshot> base;
  if (base_number != 0) {
    base = snapshots_.FindReceived(SentStates::Find(base_number).get());
    if (!base) return Status(StatusCode::kAborted, "the base was not received");
    if (!snapshots_.IsNewest(*base))
      return Status(StatusCode::kInvalidArgument, "the base is not the newest one");
  }
  const std::string token = TokenOf(number, base_number);
  const MutexLock lock(mutex_);
  std::erase_if(unfinished_, [&](const auto& other) { return other.token == token; });
  if (decoder.remaining() == 0) {
    unfinished_.push_back({.name = sent_name, .token = token});
    return Ended();
  }
  snapshots_.AddReceived(name, state, base ? std::optional(base->lineage) : std::nullopt);
  ReceiveOutcome outcome;
  SILTFS_ASSIGN_OR_RETURN(outcome.snapshot, snapshots_.Find(name));
  return outcome;
}

std::vector<UnfinishedReceive> ModelTransfers::Unfinished() const {
  const MutexLock lock(mutex_);
  return unfinished_;
}

Status ModelTransfers::Abandon(std::string_view name) {
  const MutexLock lock(mutex_);
  const size_t found =
      std::erase_if(unfinished_, [&](const auto& unfinished) { return unfinished.name == name; });
  if (found > 0) return Status::Ok();
  return {StatusCode::kNotFound, "there is no unfinished transfer of this name"};
}

}  // namespace siltfs::testing

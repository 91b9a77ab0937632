#include "fs/control/transfer_json.h"

#include <utility>

#include "fs/control/snapshot_json.h"
#include "fs/interface/snapshot_transfers.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

class CountingSink final : public ByteSink {
 public:
  explicit CountingSink(ByteSink& out) : out_(out) {}
  Status Write(ByteView bytes) override {
    SILTFS_RETURN_IF_ERROR(out_.Write(bytes));
    bytes_ += bytes.size();
    return Status::Ok();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  ByteSink& out_;
  uint64_t bytes_ = 0;
};

class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(ByteSource& in) : in_(in) {}
  Result<size_t> Read(MutableByteView out) override {
    auto got = in_.Read(out);
    if (got.ok()) bytes_ += *got;
    return got;
  }
  void SetPatience(std::optional<std::chrono::nanoseconds> patience) override {
    in_.SetPatience(patience);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  ByteSource& in_;
  uint64_t bytes_ = 0;
};

// Remembers whether the check failed. If it did not, and does not afterwards (a stream has a check
// of its own, which may have failed first), a stream has ended too early.
class NotingCheck {
 public:
  explicit NotingCheck(const std::function<Status()>& check) : check_(check) {}
  std::function<Status()> function() {
    return [this] {
      Status checked = check_();
      if (!checked.ok()) failed_ = true;
      return checked;
    };
  }
  bool failed() const { return failed_; }

 private:
  const std::function<Status()>& check_;
  bool failed_ = false;
};

Status WithoutStoreCodes(Status status) {
  if (!status.Is(StatusCode::kNotFound) && !status.Is(StatusCode::kInUse)) return status;
  return {StatusCode::kAborted, std::string(status.cause())};
}

Status MissingAnswers() {
  return {StatusCode::kInvalidArgument, "a two-way transfer needs a stream of answers"};
}

}  // namespace

Result<Json> RunSend(FileSystem& file_system, const WantedSend& wanted, ByteSink& out,
                     ByteSource* answers, const std::function<Status()>& check) {
  if (wanted.two_way && answers == nullptr) return MissingAnswers();
  NotingCheck noting(check);
  CountingSink counted(out);
  auto sent = file_system.transfers().Send({.snapshot = wanted.snapshot,
                                            .base = wanted.base,
                                            .resume = wanted.resume,
                                            .answers = wanted.two_way ? answers : nullptr},
                                           counted, noting.function());
  if (sent.status().Is(StatusCode::kInterrupted) && !noting.failed() && check().ok())
    return Status(StatusCode::kAborted, "the receiver's answers ended too early");
  if (!sent.ok()) return WithoutStoreCodes(std::move(sent).status());
  return Json{
      {"snapshot", wanted.snapshot},      {"base", wanted.base ? Json(*wanted.base) : Json()},
      {"records", sent->records},         {"chunks", sent->chunks},
      {"plain_bytes", sent->plain_bytes}, {"stream_bytes", counted.bytes()}};
}

Result<Json> RunReceive(FileSystem& file_system, KernelCache* cache, const WantedReceive& wanted,
                        ByteSource& in, ByteSink* answers, const std::function<Status()>& check) {
  if (wanted.two_way && answers == nullptr) return MissingAnswers();
  NotingCheck noting(check);
  CountingSource counted(in);
  auto received = file_system.transfers().Receive(
      {.name = wanted.name, .answers = wanted.two_way ? answers : nullptr}, counted,
      noting.function());
  if (received.status().Is(StatusCode::kInterrupted) && !noting.failed() && check().ok()) {
    return Status(StatusCode::kAborted,
                  "the stream ended too early, or stalled; what has arrived is kept, and a stream "
                  "that is sent "
                  "with the token of \"siltfs receive --token\" continues it");
  }
  if (!received.ok()) return WithoutStoreCodes(std::move(received).status());
  ForgetSnapshotName(cache, received->snapshot.name);
  return Json{{"snapshot", received->snapshot.name},
              {"records", received->records},
              {"chunks", received->chunks},
              {"plain_bytes", received->plain_bytes},
              {"stream_bytes", counted.bytes()}};
}

Json ListUnfinished(FileSystem& file_system) {
  Json list = Json::array();
  for (const UnfinishedReceive& unfinished : file_system.transfers().Unfinished()) {
    list.push_back(
        {{"name", unfinished.name}, {"token", unfinished.token}, {"running", unfinished.running}});
  }
  return list;
}

Result<Json> RunAbandon(FileSystem& file_system, const Json& arguments) {
  const auto name = arguments.is_object() ? arguments.find("name") : arguments.end();
  if (!arguments.is_object() || name == arguments.end() || !name->is_string())
    return Status(StatusCode::kInvalidArgument, "the request has no name");
  const auto text = name->get<std::string>();
  SILTFS_RETURN_IF_ERROR(WithoutStoreCodes(file_system.transfers().Abandon(text)));
  return Json{{"name", text}};
}

}  // namespace siltfs

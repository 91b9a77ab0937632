#include "fs/control/transfer_session.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "fs/control/byte_pieces.h"
#include "fs/control/protocol.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// A client that does not send its request, or does not take the result, for this long is given up.
constexpr std::chrono::seconds kPatience{60};

Status Malformed() {
  return {StatusCode::kInvalidArgument, "a request for a transfer of snapshots is malformed"};
}

// Sets `text` if the object has this key. False if the value is no text.
template <typename Text>
bool ReadText(const Json& object, const char* key, Text& text) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_string()) return false;
  text = found->get<std::string>();
  return true;
}

bool ReadTwoWay(const Json& object, bool& two_way) {
  const auto found = object.find("two_way");
  if (found == object.end() || !found->is_boolean()) return false;
  two_way = found->get<bool>();
  return true;
}

// --- The daemon's side

class ServedTransfer {
 public:
  ServedTransfer(LocalStream& stream, const std::function<bool()>& stopped)
      : stream_(stream),
        stopped_(stopped),
        in_(stream, [this] { return Check(); }),
        out_(stream, [this] { return Check(); }) {}

  PieceSource& in() { return in_; }
  PieceSink& out() { return out_; }

  Status Check() const {
    if (stopped_()) return {StatusCode::kAborted, "the store is being closed"};
    if (stream_.PeerHasLeft()) return {StatusCode::kInterrupted, "the client has left"};
    return Status::Ok();
  }

  Result<std::string> ReadRequest() {
    SILTFS_RETURN_IF_ERROR(stream_.SetTimeout(kPatience));
    SILTFS_ASSIGN_OR_RETURN(const auto line, stream_.ReadLine(kMaxTransferRequestBytes));
    if (!line) return Status(StatusCode::kInterrupted, "was interrupted");
    SILTFS_RETURN_IF_ERROR(BeginPieces(stream_));
    return *line;
  }

  // Runs a transfer, and tells the client that its outcome follows.
  Result<Json> Run(const std::function<Result<Json>()>& transfer) {
    Result<Json> outcome = transfer();
    const Status told =
        out_.intact() ? out_.EndAll() : Status(StatusCode::kAborted, "a piece was cut");
    if (told.ok()) {
      // Otherwise the result could wait behind pieces that the client takes slowly.
      in_.SkipToLast().IgnoreError("a client that has finished writing still reads the result");
    } else {
      stream_.Shutdown();  // the client would take the result for a part of the piece
    }
    stream_.SetTimeout(kPatience).IgnoreError("then the result is sent less patiently");
    return outcome;
  }

 private:
  LocalStream& stream_;
  const std::function<bool()>& stopped_;
  PieceSource in_;
  PieceSink out_;
};

// --- The client's side

// Copies bytes from the source to the connection, on a thread of its own.
class Pump {
 public:
  // `stop` is called once, if the source or the user's check fails.
  Pump(ByteSource& in, PieceSink& out, const std::atomic<bool>& done, std::function<void()> stop)
      : in_(in), out_(out), done_(done), stop_(std::move(stop)), thread_([this] { Run(); }) {}
  ~Pump() { Join().IgnoreError("the caller has joined it"); }
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Returns the failure. Call it after `done` was set.
  Status Join() {
    if (thread_.joinable()) thread_.join();
    return outcome_;
  }

 private:
  void Run() {
    outcome_ = Copy();
    if (outcome_.ok()) return;
    if (done_) {
      outcome_ = Status::Ok();
    } else {
      stop_();
    }
  }
  Status Copy() {
    Bytes buffer(kMaxPieceBytes);
    while (true) {
      SILTFS_ASSIGN_OR_RETURN(const size_t got, in_.Read(buffer));
      if (got == 0) {
        out_.End().IgnoreError("the daemon's result says why");
        return Status::Ok();
      }
      Status sent = out_.Write(ByteView(buffer).first(got));
      if (sent.Is(StatusCode::kInterrupted)) return sent;
      // The daemon takes no more. Its result says why.
      if (!sent.ok()) return Status::Ok();
    }
  }

  ByteSource& in_;
  PieceSink& out_;
  const std::atomic<bool>& done_;
  const std::function<void()> stop_;
  Status outcome_;
  std::thread thread_;
};

Status DaemonEnded() { return {StatusCode::kAborted, "the daemon of the mount has ended"}; }

// The result that follows the daemon's last piece.
Result<Json> ReadResult(LocalStream& stream, PieceSink& to, const std::function<Status()>& check) {
  // If this fails, the daemon does not wait for it either.
  if (to.intact()) to.EndAll().IgnoreError("the daemon sends its result nevertheless");
  SILTFS_ASSIGN_OR_RETURN(const auto line,
                          ReadLinePatiently(stream, control::kMaxResponseBytes, check));
  if (!line) return DaemonEnded();
  return control::DecodeResponse(*line);
}

Status CopyPieces(PieceSource& from, ByteSink* out) {
  Bytes buffer(kMaxPieceBytes);
  while (true) {
    const auto got = from.Read(buffer);
    if (!got.ok()) return got.status();
    if (*got == 0) return Status::Ok();
    if (out == nullptr)
      return {StatusCode::kInvalidArgument, "the daemon sends answers in a one-way transfer"};
    SILTFS_RETURN_IF_ERROR(out->Write(ByteView(buffer).first(*got)));
  }
}

}  // namespace

std::string EncodeWantedSend(const WantedSend& wanted) {
  Json object = {{"snapshot", wanted.snapshot}, {"two_way", wanted.two_way}};
  if (wanted.base) object["base"] = *wanted.base;
  if (!wanted.resume.empty()) object["resume"] = wanted.resume;
  return object.dump();
}

Result<WantedSend> DecodeWantedSend(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  WantedSend wanted;
  if (!object.is_object() || !object.contains("snapshot") ||
      !ReadText(object, "snapshot", wanted.snapshot) || !ReadText(object, "base", wanted.base) ||
      !ReadText(object, "resume", wanted.resume) || !ReadTwoWay(object, wanted.two_way)) {
    return Malformed();
  }
  return wanted;
}

std::string EncodeWantedReceive(const WantedReceive& wanted) {
  Json object = {{"two_way", wanted.two_way}};
  if (!wanted.name.empty()) object["name"] = wanted.name;
  return object.dump();
}

Result<WantedReceive> DecodeWantedReceive(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  WantedReceive wanted;
  if (!object.is_object() || !ReadText(object, "name", wanted.name) ||
      !ReadTwoWay(object, wanted.two_way)) {
    return Malformed();
  }
  return wanted;
}

Result<Json> ServeSend(FileSystem& file_system, LocalStream& stream,
                       const std::function<bool()>& stopped) {
  ServedTransfer served(stream, stopped);
  SILTFS_ASSIGN_OR_RETURN(const std::string line, served.ReadRequest());
  return served.Run([&]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const WantedSend wanted, DecodeWantedSend(line));
    return RunSend(file_system, wanted, served.out(), &served.in(), [&] { return served.Check(); });
  });
}

Result<Json> ServeReceive(FileSystem& file_system, KernelCache* cache, LocalStream& stream,
                          const std::function<bool()>& stopped) {
  ServedTransfer served(stream, stopped);
  SILTFS_ASSIGN_OR_RETURN(const std::string line, served.ReadRequest());
  return served.Run([&]() -> Result<Json> {
    SILTFS_ASSIGN_OR_RETURN(const WantedReceive wanted, DecodeWantedReceive(line));
    return RunReceive(file_system, cache, wanted, served.in(), &served.out(),
                      [&] { return served.Check(); });
  });
}

Result<Json> SendThrough(LocalStream& stream, const WantedSend& wanted, PipedStreams& pipes,
                         const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(stream.WriteAll(EncodeWantedSend(wanted) + "\n"));
  SILTFS_RETURN_IF_ERROR(BeginPieces(stream));
  std::atomic<bool> done = false;
  const auto out = pipes.Output(check);
  PieceSource from(stream, check);
  PieceSink to(stream, check);
  std::unique_ptr<ByteSource> answers;
  std::optional<Pump> pump;
  if (wanted.two_way) {
    answers = pipes.Input([&]() -> Status {
      return done ? Status(StatusCode::kAborted, "the transfer has ended") : check();
    });
    pump.emplace(*answers, to, done, [&stream] { stream.Shutdown(); });
  }
  Status copied = CopyPieces(from, out.get());
  if (copied.ok()) copied = from.SkipToLast();
  // The daemon then ends the transfer, and no thread waits for it.
  const bool lost = copied.Is(StatusCode::kInterrupted) && check().ok();
  if (!copied.ok()) stream.Shutdown();
  done = true;
  const Status pumped = pump ? pump->Join() : Status::Ok();
  if (!copied.ok()) {
    if (lost) return pumped.ok() ? DaemonEnded() : pumped;
    pumped.IgnoreError("the first failure is reported");
    return copied;
  }
  auto result = ReadResult(stream, to, check);
  if (!result.ok() && !pumped.ok()) return pumped;
  pumped.IgnoreError("the snapshot was sent");
  return result;
}

Result<Json> ReceiveThrough(LocalStream& stream, const WantedReceive& wanted, PipedStreams& pipes,
                            const std::function<Status()>& check) {
  SILTFS_RETURN_IF_ERROR(stream.WriteAll(EncodeWantedReceive(wanted) + "\n"));
  SILTFS_RETURN_IF_ERROR(BeginPieces(stream));
  std::atomic<bool> done = false;
  const auto answers = wanted.two_way ? pipes.Output(check) : nullptr;
  // The snapshot may be made even if this process is interrupted, so the daemon's result is
  // awaited.
  PieceSource from(stream, [] { return Status::Ok(); });
  PieceSink to(stream, check);
  const auto in = pipes.Input([&]() -> Status {
    return done ? Status(StatusCode::kAborted, "the transfer has ended") : check();
  });
  const auto finish = [&stream] {
    stream.FinishWriting().IgnoreError("the daemon has ended the transfer");
  };
  Pump pump(*in, to, done, finish);
  Status copied = CopyPieces(from, answers.get());
  const bool lost = copied.Is(StatusCode::kInterrupted) && check().ok();
  if (!copied.ok() && !lost) finish();
  const Status skipped = from.SkipToLast();
  done = true;
  const Status pumped = pump.Join();
  Status local = copied.ok() || lost ? pumped : copied;
  pumped.IgnoreError("the first failure is reported");
  if (!skipped.ok()) return local.ok() ? DaemonEnded() : local;
  auto result = ReadResult(stream, to, [] { return Status::Ok(); });
  if (!result.ok() && !local.ok()) return local;
  local.IgnoreError("the snapshot was received");
  return result;
}

}  // namespace siltfs

// The part of Stepper that makes, receives, clones and restores snapshots.
#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/snapshots.h"
#include "tests/crash/operation_data.h"
#include "tests/crash/sending_store.h"
#include "tests/crash/stepper.h"
#include "tests/crash/transfer_pipe.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/memory_stream.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

const std::function<Status()> kGoOn = [] { return Status::Ok(); };

// Keeps a stream, and the places where its messages end.
class MessageSink final : public ByteSink {
 public:
  Status Write(ByteView bytes) override {
    text += AsText(bytes);
    ends.push_back(text.size());
    return Status::Ok();
  }
  std::string text;
  std::vector<size_t> ends;
};

// Returns the beginning of the stream: the first message, and perhaps more, but not all.
std::string CutStream(const MessageSink& stream, uint64_t place) {
  const size_t first = stream.ends.front();
  switch (place % 4) {
    case 0:  // all messages but the last one
      return stream.text.substr(0, stream.ends[stream.ends.size() - 2]);
    case 1:
      return stream.text.substr(0, first);
    default:
      return stream.text.substr(0, first + place / 4 % (stream.text.size() - first));
  }
}

Status ReceiveStream(FileSystem& to, std::string stream, const std::string& name) {
  TextSource in(std::move(stream));
  return to.transfers().Receive({.name = name}, in, kGoOn).status();
}

// A two-way transfer of at most `messages` messages of the sender.
Status TransferBothWays(FileSystem& from, FileSystem& to, SendRequest request,
                        const std::string& name, size_t messages = SIZE_MAX) {
  TransferPipe stream(messages);
  TransferPipe answers;
  request.answers = &answers;
  Status sent;
  std::thread sender([&] {
    sent = from.transfers().Send(request, stream, kGoOn).status();
    stream.Close();
  });
  Status received =
      to.transfers().Receive({.name = name, .answers = &answers}, stream, kGoOn).status();
  answers.Close();
  stream.Close();
  sender.join();
  if (!stream.written() && !sent.ok()) {  // there was nothing to receive
    received.IgnoreError("the sender's failure is the cause");
    return sent;
  }
  sent.IgnoreError("the receiver's result is reported");
  return received;
}

// A store receives one snapshot at a time, and refuses others meanwhile. The threads of a sequence
// wait for each other instead, so that their answers do not depend on each other.
Mutex& ReceiveMutex() {
  static Mutex mutex;
  return mutex;
}

}  // namespace

std::string Stepper::StepOnSnapshot(const Operation& operation) {
  Snapshots& snapshots = fs_.snapshots();
  const std::string name = SnapshotName(thread_, operation.name);
  const std::string other_name = SnapshotName(thread_, operation.other_name);
  switch (operation.kind) {
    case Kind::kSnapshot:
      return Answer(snapshots.Create(name).status());
    case Kind::kRenameSnapshot:
      return Answer(snapshots.Rename(name, other_name));
    case Kind::kReceive:
      return Receive(operation);
    case Kind::kRollBack:
      return Answer(snapshots.RollBack(name, other_name).status());
    default:
      return Answer(snapshots.Remove(name));
  }
}

std::string Stepper::CloneFromSnapshot(const Operation& operation) {
  const auto other = Find(operation.other_directory, "");
  if (!other.ok()) return Answer(other.status());
  const std::string snapshot = SnapshotName(thread_, SnapshotToClone(operation.data_seed));
  const auto source =
      FindBelow(kRootInode, {std::string(kSnapshotDirectoryName), snapshot,
                             ThreadDirectory(thread_), operation.directory, operation.name});
  if (!source.ok()) return Answer(source.status());
  return Clone(*source, *other, operation.other_name);
}

// The code kAborted would count as a failure of the device.
std::string Stepper::AnswerReceived(Status received) {
  if (!received.Is(StatusCode::kAborted)) return Answer(std::move(received));
  return Answer(Status(StatusCode::kNotFound, std::string(received.cause())));
}

std::string Stepper::Receive(const Operation& operation) {
  const MutexLock lock(ReceiveMutex());
  const bool is_model = dynamic_cast<MemoryFileSystem*>(&fs_) != nullptr;
  FileSystem& from = !IsSentName(operation.name) ? fs_
                     : is_model                  ? ModelOfSendingStore()
                                                 : SendingStore();
  SendRequest request{.snapshot = SnapshotName(thread_, operation.name)};
  if (!operation.other_directory.empty())
    request.base = SnapshotName(thread_, operation.other_directory);
  const std::string name = SnapshotName(thread_, operation.other_name);
  switch (TransferOf(operation.data_seed)) {
    case Transfer::kOneWay: {
      MessageSink stream;
      Status sent = from.transfers().Send(request, stream, kGoOn).status();
      if (!sent.ok()) return Answer(std::move(sent));
      return AnswerReceived(ReceiveStream(fs_, std::move(stream.text), name));
    }
    case Transfer::kTwoWay:
      return AnswerReceived(TransferBothWays(from, fs_, std::move(request), name));
    default:
      return ReceiveCut(operation, from, std::move(request), name);
  }
}

std::string Stepper::ReceiveCut(const Operation& operation, FileSystem& from, SendRequest request,
                                const std::string& name) {
  Status cut;
  if (IsCutTwoWay(operation.data_seed)) {
    cut = TransferBothWays(from, fs_, request, name, 1);
  } else {
    MessageSink stream;
    Status sent = from.transfers().Send(request, stream, kGoOn).status();
    if (!sent.ok()) return Answer(std::move(sent));
    cut = ReceiveStream(fs_, CutStream(stream, operation.offset), name);
  }
  const Transfer transfer = TransferOf(operation.data_seed);
  if (!cut.Is(StatusCode::kInterrupted) || transfer == Transfer::kCutShort)
    return AnswerReceived(std::move(cut));
  if (transfer == Transfer::kAbandoned) {
    Status abandoned = fs_.transfers().Abandon(request.snapshot);
    if (!abandoned.ok()) return Answer(std::move(abandoned));
    Answer(std::move(cut));  // the step promises nothing
    return "abandoned";
  }
  cut.IgnoreError("the transfer is resumed");
  for (const UnfinishedReceive& unfinished : fs_.transfers().Unfinished()) {
    if (unfinished.name != request.snapshot) continue;
    request.resume = unfinished.token;
    MessageSink stream;
    Status sent = from.transfers().Send(request, stream, kGoOn).status();
    if (sent.Is(StatusCode::kInvalidArgument)) continue;  // it has another base
    if (!sent.ok()) return Answer(std::move(sent));
    return AnswerReceived(ReceiveStream(fs_, std::move(stream.text), name));
  }
  return Answer(Status(StatusCode::kUnsupported, "nothing can be resumed"));
}

}  // namespace siltfs::testing

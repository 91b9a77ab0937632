// Transfers of snapshots between two stores (SnapshotTransfers): the received snapshots show what
// was sent, whatever interrupts the transfers; hostile streams make no unsound store.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/snapshot_transfers.h"
#include "fs/interface/store_maintenance.h"
#include "fs/stream/stream_frames.h"
#include "store/base/random.h"
#include "store/base/thread_annotations.h"
#include "tests/fs/core/snapshot_history.h"
#include "tests/fs/core/snapshot_streams.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// A pipe between two threads. After `limit` bytes it is cut.
class Pipe final : public ByteSink, public ByteSource {
 public:
  explicit Pipe(uint64_t limit = UINT64_MAX) : limit_(limit) {}
  Status Write(ByteView bytes) override {
    const MutexLock lock(mutex_);
    if (closed_) return {StatusCode::kIoError, "the pipe is closed"};
    const auto fits = std::min<uint64_t>(bytes.size(), limit_);
    limit_ -= fits;
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(fits));
    changed_.NotifyAll();
    if (fits == bytes.size()) return Status::Ok();
    closed_ = true;
    return {StatusCode::kIoError, "the pipe was cut"};
  }
  Result<size_t> Read(MutableByteView out) override {
    const MutexLock lock(mutex_);
    while (bytes_.empty() && !closed_) {
      if (stalled_ && patience_) return Status(StatusCode::kInterrupted, "the pipe has stalled");
      changed_.Wait(mutex_);
    }
    const size_t size = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), size, out.begin());
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(size));
    return size;
  }
  // Nothing more is written: any patience ends at once.
  void Stall() {
    const MutexLock lock(mutex_);
    stalled_ = true;
  }
  void SetPatience(std::optional<std::chrono::nanoseconds> patience) override {
    const MutexLock lock(mutex_);
    patience_ = patience.has_value();
  }
  void Close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<uint8_t> bytes_ SILTFS_GUARDED_BY(mutex_);
  uint64_t limit_ SILTFS_GUARDED_BY(mutex_);
  bool closed_ SILTFS_GUARDED_BY(mutex_) = false;
  bool patience_ SILTFS_GUARDED_BY(mutex_) = false;
  bool stalled_ SILTFS_GUARDED_BY(mutex_) = false;
};

// A two-way transfer, of which the sender writes at most `limit` bytes.
Result<ReceiveOutcome> TransferBothWays(FileSystem& from, FileSystem& to, SendRequest request,
                                        uint64_t limit = UINT64_MAX) {
  Pipe stream(limit);
  Pipe answers;
  request.answers = &answers;
  std::thread sender([&] {
    from.transfers().Send(request, stream, kGoOn).status().IgnoreError("the receiver reports it");
    stream.Close();
  });
  const auto received = to.transfers().Receive({.answers = &answers}, stream, kGoOn);
  answers.Close();
  sender.join();
  return received;
}

std::string TokenOf(FileSystem& to) {
  const auto unfinished = to.transfers().Unfinished();
  REQUIRE(unfinished.size() == 1);
  return unfinished.front().token;
}

void FillTree(SnapshotFixture& f) {
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  const InodeNumber sub = MakeDir(fs, dir, "sub");
  f.Write("small", "some bytes");
  WriteFile(fs, "large", RandomBytes(1, 3'000'000));
  const InodeNumber linked = MakeFile(fs, sub, "linked");
  REQUIRE_OK(fs.Link(linked, dir, "other"));
  fs.Forget(linked, 1);
  REQUIRE_OK(fs.SetXattr(linked, "user.a", "value", XattrMode::kSet));
  const auto symlink = fs.MakeSymlink(dir, "symlink", "../target", kCaller);
  REQUIRE_OK(symlink);
  fs.Forget(symlink->inode, 1);
}

TEST_CASE("a received snapshot shows what was sent") {
  SnapshotFixture a;
  SnapshotFixture b;
  FillTree(a);
  const Paths first = ReadState(a, std::nullopt);
  a.Create("first");
  REQUIRE_OK(Receive(*b.fs, Send(*a.fs, {.snapshot = "first"})));
  RequireSame(ReadState(b, "first"), first);
  CHECK(ReadState(b, std::nullopt).empty());
  CHECK(b.fs->snapshots().Find("first")->files == a.fs->snapshots().Find("first")->files);

  // Everything that can change.
  FileSystem& fs = *a.fs;
  a.Append(a.At("large"), "more");
  a.Write("added", "1");
  REQUIRE_OK(fs.Unlink(a.At("dir"), "other"));
  REQUIRE_OK(fs.Rename(a.At("dir"), "sub", kRootInode, "moved", RenameMode::kReplace));
  REQUIRE_OK(fs.Unlink(kRootInode, "small"));
  const Paths second = ReadState(a, std::nullopt);
  a.Create("second");
  const std::string stream = Send(fs, {.snapshot = "second", .base = "first"});
  CHECK(stream.size() < 1'000'000);
  const auto received = Receive(*b.fs, stream);
  REQUIRE_OK(received);
  RequireSame(ReadState(b, "first"), first);
  RequireSame(ReadState(b, "second"), second);
  CHECK(Lines(b.Diff("first", "second")) == Lines(a.Diff("first", "second")));

  b.Reopen();
  RequireSame(ReadState(b, "first"), first);
  RequireSame(ReadState(b, "second"), second);
  b.store.Close();
  RequireSound(b);
}

TEST_CASE("a received snapshot can be sent on, cloned and deleted") {
  SnapshotFixture a;
  SnapshotFixture b;
  SnapshotFixture c;
  FillTree(a);
  a.Create("first");
  const Paths first = ReadState(a, std::nullopt);
  a.Append(a.At("large"), "more");
  a.Create("second");
  const Paths second = ReadState(a, std::nullopt);
  REQUIRE_OK(Receive(*b.fs, Send(*a.fs, {.snapshot = "first"})));
  REQUIRE_OK(Receive(*b.fs, Send(*a.fs, {.snapshot = "second", .base = "first"})));
  REQUIRE_OK(Receive(*c.fs, Send(*b.fs, {.snapshot = "first"}), "renamed"));
  // The base is the same snapshot, whichever store has sent it.
  REQUIRE_OK(Receive(*c.fs, Send(*a.fs, {.snapshot = "second", .base = "first"})));
  RequireSame(ReadState(c, "renamed"), first);
  RequireSame(ReadState(c, "second"), second);

  const CloneRequest clone{
      .source = b.At(".snapshots/first/dir"), .parent = kRootInode, .name = "clone"};
  REQUIRE_OK(b.fs->entries().Clone(clone));
  CHECK(ListNames(*b.fs, b.At("clone")) == ListNames(*a.fs, a.At(".snapshots/first/dir")));

  // The newest snapshot is deleted, so the one before is the base of the next transfer.
  REQUIRE_OK(b.fs->snapshots().Remove("second"));
  REQUIRE_OK(b.fs->snapshots().AwaitRemovals());
  RequireSame(ReadState(b, "first"), first);
  REQUIRE_OK(Receive(*b.fs, Send(*a.fs, {.snapshot = "second", .base = "first"})));
  RequireSame(ReadState(b, "second"), second);
  REQUIRE_OK(b.fs->snapshots().Remove("first"));
  REQUIRE_OK(b.fs->snapshots().AwaitRemovals());
  RequireSame(ReadState(b, "second"), second);
  REQUIRE_OK(b.fs->snapshots().Remove("second"));
  REQUIRE_OK(b.fs->snapshots().AwaitRemovals());
  REQUIRE_OK(b.fs->maintenance().CollectGarbage(false));
  b.store.Close();
  RequireSound(b);
  c.store.Close();
  RequireSound(c);
}

TEST_CASE("transfers that cannot be made are refused") {
  SnapshotFixture a;
  SnapshotFixture b;
  a.Write("file", "1");
  a.Create("first");
  a.Write("other", "1");
  a.Create("second");
  a.Write("third", "1");
  a.Create("third");
  TextSink out;
  const auto send = [&](SendRequest request) {
    return a.fs->transfers().Send(request, out, kGoOn).status();
  };
  REQUIRE_CODE(send({.snapshot = "none"}), kNotFound);
  REQUIRE_CODE(send({.snapshot = "first", .base = "none"}), kNotFound);
  REQUIRE_CODE(send({.snapshot = "first", .base = "second"}), kInvalidArgument);
  REQUIRE_CODE(send({.snapshot = "first", .resume = "nonsense"}), kInvalidArgument);
  const std::string first = Send(*a.fs, {.snapshot = "first"});
  const std::string second = Send(*a.fs, {.snapshot = "second", .base = "first"});
  REQUIRE_CODE(Receive(*b.fs, second).status(), kAborted);  // the base is missing
  REQUIRE_CODE(Receive(*b.fs, first + "x").status(), kCorruption);
  REQUIRE_OK(Receive(*b.fs, first));
  REQUIRE_CODE(Receive(*b.fs, first).status(), kAlreadyExists);
  REQUIRE_OK(b.fs->snapshots().Create("second"));
  REQUIRE_CODE(Receive(*b.fs, second).status(), kAlreadyExists);
  REQUIRE_CODE(Receive(*b.fs, second, "a/b").status(), kInvalidArgument);
  REQUIRE_OK(Receive(*b.fs, second, "2"));
  // The base is not the newest one any more.
  REQUIRE_CODE(Receive(*b.fs, Send(*a.fs, {.snapshot = "third", .base = "first"})).status(),
               kInvalidArgument);
  REQUIRE_CODE(Receive(*b.fs, "").status(), kInterrupted);
  REQUIRE_CODE(Receive(*b.fs, "no stream, but some text").status(), kCorruption);
  // A received snapshot has nothing in common with the live files.
  REQUIRE_CODE(b.fs->snapshots().RollBack("first", "kept").status(), kInvalidArgument);
  REQUIRE_CODE(b.fs->snapshots().Diff("first", std::nullopt, kGoOn,
                                      [](const PathChange&) { return Status::Ok(); }),
               kInvalidArgument);
}

TEST_CASE("files that lost their last name while they were open are not sent") {
  SnapshotFixture a;
  SnapshotFixture b;
  FileSystem& fs = *a.fs;
  a.Write("open", "1");
  const InodeNumber file = a.At("open");
  REQUIRE_OK(fs.SetXattr(file, "user.a", "value", XattrMode::kSet));
  a.Create("first");
  REQUIRE_OK(Receive(*b.fs, Send(fs, {.snapshot = "first"})));
  REQUIRE_OK(fs.OpenFile(file, false));
  REQUIRE_OK(fs.Unlink(kRootInode, "open"));
  a.Create("second");
  REQUIRE_OK(Receive(*b.fs, Send(fs, {.snapshot = "second", .base = "first"})));
  CHECK(ReadState(b, "second").empty());
  // The name comes back, with attributes that have not changed since the base.
  const auto temporary = fs.MakeTemporaryFile(kRootInode, 0600, kCaller);
  REQUIRE_OK(temporary);
  REQUIRE_OK(fs.SetXattr(temporary->inode, "user.b", "value", XattrMode::kSet));
  REQUIRE_OK(fs.Write(temporary->inode, 0, RandomBytes(3, 200'000)));
  a.Create("third");
  REQUIRE_OK(Receive(*b.fs, Send(fs, {.snapshot = "third", .base = "second"})));
  CHECK(ReadState(b, "third").empty());
  REQUIRE_OK(fs.Link(temporary->inode, kRootInode, "named"));
  fs.Forget(temporary->inode, 1);
  a.Create("fourth");
  const Paths fourth = ReadState(a, std::nullopt);
  REQUIRE_OK(Receive(*b.fs, Send(fs, {.snapshot = "fourth", .base = "third"})));
  RequireSame(ReadState(b, "fourth"), fourth);
  fs.ReleaseFile(file);
  fs.ReleaseFile(temporary->inode);
  fs.Forget(temporary->inode, 1);
  b.store.Close();
  RequireSound(b);
}

TEST_CASE("snapshots of a lineage are removed from the newest one on, without waiting") {
  SnapshotFixture a;
  SnapshotFixture b;
  std::vector<Paths> states;
  std::vector<std::string> streams;
  for (int i = 0; i < 4; ++i) {
    a.Write("file", fmt::format("content {}", i));
    a.Write(fmt::format("file {}", i), std::to_string(i));
    a.Create(fmt::format("s{}", i));
    states.push_back(ReadState(a, std::nullopt));
    SendRequest request{.snapshot = fmt::format("s{}", i)};
    if (i > 0) request.base = fmt::format("s{}", i - 1);
    streams.push_back(Send(*a.fs, request));
    REQUIRE_OK(Receive(*b.fs, streams.back()));
  }
  for (int round = 0; round < (kIsSanitized ? 3 : 20); ++round) {
    for (int i = 3; i > 0; --i) REQUIRE_OK(b.fs->snapshots().Remove(fmt::format("s{}", i)));
    for (int i = 1; i < 4; ++i) {
      REQUIRE_OK(Receive(*b.fs, streams[static_cast<size_t>(i)]));
      RequireSame(ReadState(b, fmt::format("s{}", i)), states[static_cast<size_t>(i)]);
    }
  }
  b.Reopen();
  for (int i = 3; i >= 0; --i) REQUIRE_OK(b.fs->snapshots().Remove(fmt::format("s{}", i)));
  REQUIRE_OK(b.fs->snapshots().AwaitRemovals());
  b.store.Close();
  RequireSound(b);
}

TEST_CASE("an interrupted transfer goes on, or is abandoned", "[race]") {
  SnapshotFixture a;
  SnapshotFixture b;
  FillTree(a);
  for (int i = 0; i < 4000; ++i)
    a.Write(fmt::format("file with a long name to fill batches of records, number {}", i),
            std::to_string(i));
  WriteFile(*a.fs, "data", RandomBytes(7, 5'000'000));
  a.Create("first");
  const Paths first = ReadState(a, std::nullopt);
  const std::string stream = Send(*a.fs, {.snapshot = "first"});
  REQUIRE_CODE(Receive(*b.fs, stream.substr(0, stream.size() - 1)).status(), kInterrupted);
  const std::string rest = Send(*a.fs, {.snapshot = "first", .resume = TokenOf(*b.fs)});
  CHECK(rest.size() < stream.size() / 4);
  REQUIRE_OK(Receive(*b.fs, rest));
  RequireSame(ReadState(b, "first"), first);
  REQUIRE(b.fs->transfers().Unfinished().empty());

  a.Write("more", "1");
  a.Create("second");
  const std::string second = Send(*a.fs, {.snapshot = "second", .base = "first"});
  REQUIRE_CODE(Receive(*b.fs, second.substr(0, second.size() - 1)).status(), kInterrupted);
  REQUIRE_CODE(b.fs->transfers().Abandon("other"), kNotFound);
  b.Reopen();
  REQUIRE(b.fs->transfers().Unfinished().size() == 1);
  REQUIRE_OK(b.fs->transfers().Abandon("second"));
  REQUIRE(b.fs->transfers().Unfinished().empty());
  RequireSame(ReadState(b, "first"), first);
  b.store.Close();
  RequireSound(b);
}

TEST_CASE("a stream that stalls within a batch holds up no garbage collection", "[race]") {
  SnapshotFixture a;
  FillTree(a);
  a.Create("first");
  const std::string stream = Send(*a.fs, {.snapshot = "first"});
  SnapshotFixture b;
  Pipe within;  // a batch, because the chunks of a large file come before all records
  REQUIRE_OK(within.Write(AsBytes(std::string_view(stream).substr(0, stream.size() / 2))));
  within.Stall();
  REQUIRE_CODE(b.fs->transfers().Receive({}, within, kGoOn), kInterrupted);
  REQUIRE_OK(b.fs->maintenance().CollectGarbage(false));
  // Before a batch, a stream may stall for as long as it likes.
  Pipe before;
  before.Stall();
  auto receiving =
      std::async(std::launch::async, [&] { return b.fs->transfers().Receive({}, before, kGoOn); });
  REQUIRE_OK(b.fs->maintenance().CollectGarbage(false));
  REQUIRE_OK(before.Write(AsBytes(stream)));
  before.Close();
  REQUIRE_OK(receiving.get());
}

// --- Random histories

class Transfers {
 public:
  explicit Transfers(uint64_t seed) : random_(seed * 1000), from_(seed) {}

  void Step() {
    from_.Step();
    if (!random_.OneIn(12)) return;
    const uint64_t way = random_.Below(10);
    if (way < 6) {
      Transfer();
    } else if (way < 7 && !received_.empty()) {
      auto removed = received_.begin();
      std::advance(removed, static_cast<ptrdiff_t>(random_.Below(received_.size())));
      REQUIRE_OK(to_.fs->snapshots().Remove(removed->name));
      if (random_.OneIn(2)) REQUIRE_OK(to_.fs->snapshots().AwaitRemovals());
      received_.erase(removed);
    } else if (way < 8) {
      REQUIRE_OK(to_.fs->maintenance().CollectGarbage(false));
    } else if (way < 9) {
      Check();
    } else if (random_.OneIn(2)) {
      to_.Reopen();
    } else {
      to_.store.Crash();
      to_.fs = &to_.store.Open();
    }
  }

  void Finish() {
    Check();
    to_.store.Close();
    RequireSound(to_);
    from_.Finish();
  }
  size_t transfers() const { return transfers_; }

 private:
  struct Received {
    std::string name;
    Paths state;
  };

  void Check() {
    for (const Received& received : received_) {
      CAPTURE(received.name);
      RequireSame(ReadState(to_, received.name), received.state);
    }
  }

  // Sends a random snapshot, with interruptions. The base is the newest received one, if the sender
  // still has it.
  void Transfer() {
    const auto& states = from_.states();
    if (states.empty()) return;
    auto sent = states.begin();
    std::advance(sent, static_cast<ptrdiff_t>(random_.Below(states.size())));
    const auto known = [&](const Received& received) { return received.name == sent->first; };
    if (std::ranges::any_of(received_, known)) return;
    FileSystem& from = *from_.fixture().fs;
    SendRequest request{.snapshot = sent->first};
    const auto list = from.snapshots().List();
    const auto number = [&](const std::string& name) {
      const auto found = std::ranges::find(list, name, &SnapshotInfo::name);
      return found == list.end() ? 0 : found->number;
    };
    if (!received_.empty() && random_.OneIn(8) == false) {
      const std::string& base = received_.back().name;
      if (number(base) == 0 || number(base) >= number(sent->first)) return;
      request.base = base;
    }
    CAPTURE(request.snapshot, request.base.value_or("none"));
    const bool both_ways = random_.OneIn(3);
    for (int attempt = 0;; ++attempt) {
      const bool whole = attempt == 3 || random_.OneIn(2);
      Result<ReceiveOutcome> outcome = Status(StatusCode::kInterrupted, "not begun");
      if (both_ways) {
        outcome =
            TransferBothWays(from, *to_.fs, request, whole ? UINT64_MAX : random_.Below(200'000));
      } else {
        SendRequest resumed = request;
        const auto unfinished = to_.fs->transfers().Unfinished();
        for (const UnfinishedReceive& receive : unfinished) {
          if (receive.name == request.snapshot && attempt > 0 && random_.OneIn(2))
            resumed.resume = receive.token;
        }
        const std::string stream = Send(from, resumed);
        outcome = Receive(
            *to_.fs,
            whole ? stream : std::string_view(stream).substr(0, random_.Below(stream.size())));
      }
      if (outcome.ok()) break;
      REQUIRE_CODE(outcome.status(), kInterrupted);
      REQUIRE_FALSE(whole);
      if (random_.OneIn(6)) return;  // and another transfer may replace it
      if (random_.OneIn(4)) to_.Reopen();
      if (random_.OneIn(4)) REQUIRE_OK(to_.fs->maintenance().CollectGarbage(false));
    }
    received_.push_back({sent->first, sent->second});
    ++transfers_;
    RequireSame(ReadState(to_, sent->first), sent->second);
  }

  Random random_;
  SnapshotHistory from_;
  SnapshotFixture to_;
  std::vector<Received> received_;  // in the order of arrival
  size_t transfers_ = 0;
};

TEST_CASE("received snapshots are those of any history, whatever interrupts the transfers",
          "[race]") {
  const uint64_t seed = GENERATE(range(1, kIsSanitized ? 3 : 7));
  CAPTURE(seed);
  Transfers transfers(seed);
  for (int step = 0; step < (kIsSanitized ? 300 : 900); ++step) {
    CAPTURE(step);
    transfers.Step();
  }
  CHECK(transfers.transfers() > (kIsSanitized ? 0 : 3));
  transfers.Finish();
}

// --- Hostile streams

std::vector<StreamMessage> MessagesOf(std::string_view stream) {
  TextSource in(stream);
  StreamReader reader(in);
  std::vector<StreamMessage> messages;
  while (messages.empty() || !std::holds_alternative<StreamEnd>(messages.back())) {
    auto message = reader.Read();
    REQUIRE_OK(message);
    messages.push_back(*std::move(message));
  }
  return messages;
}

std::string StreamOf(const std::vector<StreamMessage>& messages) {
  TextSink out;
  StreamWriter writer(out);
  for (const StreamMessage& message : messages) REQUIRE_OK(writer.Write(message));
  return std::move(out.text);
}

// Changes a record, or exchanges, repeats or removes some.
void Forge(StreamRecords& records, Random& random) {
  if (records.records.empty()) return;
  const size_t at = random.Below(records.records.size());
  const size_t other = random.Below(records.records.size());
  StreamRecord& record = records.records[at];
  const StreamRecord& source = records.records[other];
  switch (random.Below(8)) {
    case 7:
      (random.OneIn(2) ? record.prefix : record.suffix) += static_cast<uint32_t>(random.Below(40));
      break;
    case 0:
      records.records.erase(records.records.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      record.value.reset();
      break;
    case 2:
      record.value = StreamRecord(source).value;
      break;
    case 3:
      record.key = std::string(source.key);
      break;
    case 4:
      record.key[random.Below(record.key.size())] ^= static_cast<char>(1u << random.Below(8));
      break;
    case 5:
      if (record.value && !record.value->empty())
        (*record.value)[random.Below(record.value->size())] ^=
            static_cast<char>(1u << random.Below(8));
      break;
    default:
      if (record.value && !record.value->empty())
        record.value->resize(random.Below(record.value->size()));
      break;
  }
}

TEST_CASE("a forged stream is refused, or makes a sound snapshot") {
  SnapshotFixture a;
  FillTree(a);
  a.Create("first");
  a.Append(a.At("large"), "more");
  REQUIRE_OK(a.fs->Rename(a.At("dir"), "sub", kRootInode, "moved", RenameMode::kReplace));
  a.Write("added", "1");
  MakeDir(*a.fs, a.At("moved"), "deeper");
  a.Create("second");
  const std::string base = Send(*a.fs, {.snapshot = "first"});
  const bool incremental = GENERATE(false, true);
  CAPTURE(incremental);
  const auto whole = MessagesOf(incremental ? Send(*a.fs, {.snapshot = "second", .base = "first"})
                                            : Send(*a.fs, {.snapshot = "second"}));
  SnapshotFixture b;
  if (incremental) REQUIRE_OK(Receive(*b.fs, base));
  const Paths before = incremental ? ReadState(b, "first") : Paths();
  Random random(5);
  size_t refused = 0;
  constexpr size_t kForged = kIsSanitized ? 20 : 150;
  for (size_t i = 0; i < kForged; ++i) {
    CAPTURE(i);
    std::vector<StreamMessage> messages = whole;
    for (StreamMessage& message : messages) {
      if (auto* const records = std::get_if<StreamRecords>(&message)) {
        Forge(*records, random);
        if (auto* const end = std::get_if<StreamEnd>(&messages.back()))
          end->records = records->records.size();
      }
    }
    const auto received = Receive(*b.fs, StreamOf(messages));
    if (received.ok()) {
      // Whatever the records say, they agree with each other.
      b.store.Close();
      RequireSound(b);
      b.fs = &b.store.Open();
      REQUIRE_OK(b.fs->snapshots().Remove("second"));
      REQUIRE_OK(b.fs->snapshots().AwaitRemovals());
    } else {
      REQUIRE_CODE(received.status(), kCorruption);
      ++refused;
    }
  }
  CHECK(refused > kForged / 2);
  for (const UnfinishedReceive& unfinished : b.fs->transfers().Unfinished())
    REQUIRE_OK(b.fs->transfers().Abandon(unfinished.name));
  if (incremental) RequireSame(ReadState(b, "first"), before);
  b.store.Close();
  RequireSound(b);
}

TEST_CASE("a stream without a chunk is refused, and so is one with a wrong chunk") {
  SnapshotFixture a;
  SnapshotFixture b;
  FillTree(a);
  a.Create("first");
  const auto whole = MessagesOf(Send(*a.fs, {.snapshot = "first"}));
  const bool removed = GENERATE(false, true);
  CAPTURE(removed);
  size_t blocks = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (!std::holds_alternative<StreamBlock>(whole[i])) continue;
    ++blocks;
    CAPTURE(i);
    std::vector<StreamMessage> messages = whole;
    auto& end = std::get<StreamEnd>(messages.back());
    auto& block = std::get<StreamBlock>(messages[i]);
    if (removed) {
      end.chunks -= block.chunks.size();
      messages.erase(messages.begin() + static_cast<ptrdiff_t>(i));
    } else {
      block.payload[block.payload.size() / 2] ^= 1;
    }
    SnapshotFixture c;
    REQUIRE_CODE(Receive(*c.fs, StreamOf(messages)).status(), kCorruption);
    c.store.Close();
    RequireSound(c);
  }
  CHECK(blocks > 0);
}

}  // namespace
}  // namespace siltfs::testing

#include "tests/crash/block/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/interruption.h"
#include "tests/crash/kill/writers.h"

namespace siltfs::blocktest {
namespace {

using killtest::Failure;
using killtest::SystemFailure;

constexpr auto kPatience = std::chrono::seconds(60);

std::string MakeDirectory(const std::string& path) {
  std::filesystem::create_directories(path);
  return path;
}

void Require(const killtest::Ended& ended, const std::string& what) {
  if (ended.code != 0)
    throw Failure(fmt::format("{}: exit code {}: {}", what, ended.code, ended.errors));
}

}  // namespace

Bench::Bench(const std::string& directory, LowerKind lower_kind, const std::string& siltfs)
    : kind(lower_kind),
      lower(MakeDirectory(directory + "/lower")),
      scratch(MakeDirectory(directory + "/scratch")),
      product({.siltfs = siltfs,
               .store = lower + "/store",
               .mountpoint = MakeDirectory(directory + "/mount"),
               .scratch = scratch}),
      disk(MakeDirectory(directory + "/disk"), DiskBytesFor(lower_kind)) {}

// A writer that runs on its own thread.
class Load::Worker {
 public:
  Worker(unsigned number, std::string directory, killtest::RoundState& round, killtest::Tree tree,
         Random random, ByteView pool)
      : recorder_(std::move(directory), round, std::move(tree)),
        thread_([this, number, random, pool] {
          try {
            killtest::RunWriter(number, recorder_, random, pool);
          } catch (const std::exception& error) {
            failure_ = error.what();
          }
          ended_ = true;
        }) {}
  ~Worker() { Join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  bool ended() const { return ended_; }
  const killtest::Recorder& recorder() const { return recorder_; }
  const std::string& failure() const { return failure_; }

 private:
  killtest::Recorder recorder_;
  std::string failure_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  // declared last, because it uses the other members
};

Load::Load(Bench& bench, RecordingDevice& device, const RecordingOptions& options, uint64_t seed)
    : bench_(bench),
      device_(device),
      options_(options),
      random_(seed),
      pool_(killtest::MakePool(random_.Next())),
      bases_(options.writers) {
  recording.wal = random_.OneIn(2);
}

Load::~Load() {
  if (mount_) bench_.product.Finish(kPatience);
  mount_.reset();
  loop_.reset();
  bench_.disk.Serve(nullptr);
}

void Load::Prepare() {
  bench_.disk.Serve(&device_);
  loop_ = std::make_unique<LoopDevice>(bench_.disk.path());
  MakeLower(bench_.kind, loop_->path(), bench_.scratch);
  mount_ = std::make_unique<LowerMount>(bench_.kind, loop_->path(), bench_.lower);
  Require(bench_.product.Make(), "siltfs mkfs");
  Mount();
  for (unsigned writer = 0; writer <= options_.writers; ++writer) {
    const std::string name = writer < options_.writers ? fmt::format("w{}", writer) : "sqlite";
    const std::string directory = bench_.product.options().mountpoint + "/" + name;
    if (mkdir(directory.c_str(), 0755) != 0) throw SystemFailure("mkdir " + directory);
  }
  Require(bench_.product.Unmount(), "siltfs umount");
  bench_.product.Finish(kPatience);
  mount_->Sync();
  recording.first = device_.position();
}

void Load::Mount() { Require(bench_.product.Mount(options_.environment), "siltfs mount"); }

void Load::Maintain(killtest::RoundState& round, Session& session, uint64_t seed, bool may_fail) {
  Random random(seed);
  const std::string scratch = MakeDirectory(bench_.scratch + "/maintenance");
  const std::string& siltfs = bench_.product.options().siltfs;
  const std::string& mountpoint = bench_.product.options().mountpoint;
  while (!round.stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random.Below(200)));
    const uint64_t choice = random.Below(6);
    if (choice == 0) {
      // Writes back the data of the lower file system, as the kernel may do at any time.
      mount_->Sync();
      continue;
    }
    const char* const command = choice < 4 ? "sync" : choice == 4 ? "gc" : "settle";
    const killtest::Stamp begin = round.clock.Now();
    const killtest::Ended ended =
        killtest::Run({"timeout", "60", siltfs, command, mountpoint}, scratch);
    if (ended.code == 0 && choice < 4)
      session.syncs.push_back({.begin = begin, .position = device_.position()});
    if (ended.code != 0 && !may_fail)
      session.failures.push_back(
          fmt::format("siltfs {}: exit code {}: {}", command, ended.code, ended.errors));
  }
}

void Load::RunSession(bool may_fail,
                      const std::function<void(const std::function<bool()>&)>& during) {
  Session& session = recording.sessions.emplace_back();
  session.first = device_.position();
  Mount();
  killtest::RoundState round;
  round.position = [this] { return device_.position(); };
  round.killing = may_fail;  // errors are expected
  std::vector<std::unique_ptr<Worker>> workers;
  std::thread sqlite, maintenance;
  std::optional<SqliteWriter> database;
  {
    const killtest::InterruptionBlocked blocked;  // inherited by the threads
    const std::string& mountpoint = bench_.product.options().mountpoint;
    if (HaveSqlite()) {
      database.emplace(mountpoint + "/sqlite/database", recording.wal, round.position,
                       recording.transactions.size());
      sqlite = std::thread([&] { database->Run(round.stop); });
    }
    for (unsigned i = 0; i < options_.writers; ++i) {
      const std::string name = fmt::format("w{}", i);
      session.writers.push_back({name, bases_[i].Copy(), {}});
      workers.push_back(std::make_unique<Worker>(i, mountpoint + "/" + name, round,
                                                 bases_[i].Copy(), Random(random_.Next()), *pool_));
    }
    const uint64_t seed = random_.Next();
    maintenance = std::thread([&, seed] { Maintain(round, session, seed, may_fail); });
  }
  during([&] {
    return killtest::IsInterrupted() ||
           std::all_of(workers.begin(), workers.end(), [](const auto& w) { return w->ended(); });
  });
  round.stop = true;
  for (unsigned i = 0; i < options_.writers; ++i) {
    workers[i]->Join();
    session.writers[i].history = workers[i]->recorder().history();
    bases_[i] = workers[i]->recorder().tree().Copy();
    if (!workers[i]->failure().empty()) session.failures.push_back(workers[i]->failure());
  }
  maintenance.join();
  if (database) {
    sqlite.join();
    const auto& done = database->transactions();
    recording.transactions.insert(recording.transactions.end(), done.begin(), done.end());
    database.reset();
  }
  const killtest::Stamp all_done = round.clock.Now();
  const killtest::Ended unmounted = bench_.product.Unmount();
  if (unmounted.code == 0)
    session.syncs.push_back({.begin = all_done, .position = device_.position()});
  session.unmount_code = unmounted.code;
  session.unmount_message = unmounted.errors;
  session.daemon_code = bench_.product.Finish(kPatience);
  killtest::CheckInterruption();
}

void Load::TakeDown() {
  bench_.product.Finish(kPatience);
  if (mount_) mount_->Unmount();
  mount_.reset();
  loop_.reset();
  bench_.disk.Serve(nullptr);
}

std::string DescribePromises(const Session& session, const WriterRecord& writer,
                             uint64_t position) {
  constexpr size_t kMost = 8;
  const std::vector<killtest::Operation>& operations = writer.history.operations;
  const auto begun = static_cast<size_t>(
      std::find_if(operations.begin(), operations.end(),
                   [&](const auto& operation) { return operation.position > position; }) -
      operations.begin());
  std::string text = fmt::format("{} until record {}:", writer.name, position);
  for (size_t i = begun - std::min(begun, kMost); i < begun; ++i) {
    const killtest::Operation& operation = operations[i];
    text += fmt::format("\n        {} \"{}\" from record {}, moments {} to {}", i + 1,
                        DescribeOperation(operation), operation.position, operation.begin,
                        operation.end == killtest::kNever ? "-" : std::to_string(operation.end));
  }
  for (const killtest::SyncReturn& sync : writer.history.syncs) {
    const size_t change = sync.last_change.value_or(0) + 1;
    if (!sync.last_change || sync.position > position || change + kMost <= begun) continue;
    text += fmt::format("\n        an fsync promised {} at record {}", change, sync.position);
  }
  for (const WholeSync& sync : session.syncs) {
    if (sync.position > position) continue;
    text += fmt::format("\n        siltfs sync promised moments before {} at record {}", sync.begin,
                        sync.position);
  }
  return text;
}

killtest::History HistoryAt(const Session& session, const WriterRecord& writer, uint64_t position) {
  killtest::History history;
  for (const killtest::Operation& operation : writer.history.operations) {
    if (operation.position > position) break;
    history.operations.push_back(operation);
    history.operations.back().written_back = false;
  }
  for (const killtest::SyncReturn& sync : writer.history.syncs) {
    if (sync.position > position) break;
    if (sync.last_write) history.operations[*sync.last_write].written_back = true;
    if (sync.last_change) history.MadeDurable(*sync.last_change);
  }
  for (const WholeSync& sync : session.syncs) {
    if (sync.position > position) continue;
    size_t ended = 0;
    for (; ended < history.operations.size() && history.operations[ended].end < sync.begin; ++ended)
      history.operations[ended].written_back = true;
    history.durable_operations = std::max(history.durable_operations, ended);
    history.durable_before = std::max(history.durable_before, sync.begin);
  }
  return history;
}

}  // namespace siltfs::blocktest

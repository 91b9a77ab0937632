#include "tests/crash/cut.h"

#include <fmt/format.h>

#include <optional>

#include "fs/check/check_store.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/coding.h"
#include "store/env/posix_env.h"
#include "tests/crash/sequence.h"
#include "tests/crash/visible_tree.h"

namespace siltfs::testing {
namespace {

constexpr std::chrono::hours kNever{1};
constexpr std::string_view kChainMagic = "siltfs-cuts-3\n";
// The magic of an older format, which lacks the mix of the steps after a recovery.
constexpr std::string_view kOlderChainMagic = "siltfs-cuts-2\n";

// Returns the digests of all threads' trees.
Result<std::vector<uint64_t>> DigestAll(FileSystem& fs, size_t threads) {
  std::vector<uint64_t> digests;
  for (unsigned thread = 0; thread < threads; ++thread) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t digest, DigestTree(fs, thread, TimesWith(threads)));
    digests.push_back(digest);
  }
  return digests;
}

class CutCheck {
 public:
  CutCheck(SimEnv& device, const History& history, size_t cut, const CutOptions& options)
      : device_(device), history_(history), cut_(cut), options_(options) {}

  Status Run(CutOutcome& outcome) {
    const size_t threads = history_.threads();
    // A delta that cannot be inflated is found only by a check that reads the data.
    const bool versions = options_.mix == OperationGenerator::Mix::kVersions;
    SILTFS_RETURN_IF_ERROR(
        CheckUnopened("before it was opened", options_.seed % 4 == 0 || versions));
    if (options_.failing_open != 0) {
      FailToOpen();
      SILTFS_RETURN_IF_ERROR(CheckUnopened("after opening it had failed", versions));
    }
    std::vector<uint64_t> read_only;
    if (options_.seed % 3 == 0) {
      SILTFS_ASSIGN_OR_RETURN(read_only, LookReadOnly(threads));
    }
    device_.StartTrace();
    SILTFS_ASSIGN_OR_RETURN(fs_, OpenStore(device_, kNever, findings_));
    SILTFS_ASSIGN_OR_RETURN(const auto digests, DigestAll(*fs_, threads));
    if (!read_only.empty() && read_only != digests) {
      return Status(StatusCode::kCorruption, "a read-only mount shows another file system");
    }
    SILTFS_ASSIGN_OR_RETURN(outcome.steps, history_.Match(cut_, digests));
    SILTFS_RETURN_IF_ERROR(NoFindings("opening it"));
    SILTFS_RETURN_IF_ERROR(CheckCounts());
    SILTFS_ASSIGN_OR_RETURN(outcome.deltas, HasDeltas(*fs_));
    Marks::Ready(device_, static_cast<unsigned>(threads));
    const StepsByThread surviving = history_.Surviving(outcome.steps);
    if (read_only_refused_ && !EndsWithRollBack(surviving)) {
      return Status(StatusCode::kCorruption,
                    "a read-only mount reported an unfinished rollback, but there was none");
    }
    SILTFS_RETURN_IF_ERROR(GoOn(threads));
    SILTFS_RETURN_IF_ERROR(NoFindings("going on with it"));
    outcome.trace = device_.TakeTrace();
    SILTFS_ASSIGN_OR_RETURN(const History after, History::Read(outcome.trace, surviving));
    const InodeNumber lowest = after.LowestInode();
    if (lowest <= history_.HighestInode(cut_)) {
      return Status(StatusCode::kCorruption, fmt::format("inode {} was made twice", lowest));
    }
    return Reopen(after, outcome.trace.size(), threads);
  }

 private:
  // Opens the store once while the device fails. The result does not matter: a failed sync has
  // dropped writes, and the next open must cope with that.
  void FailToOpen() {
    Random random(options_.failing_open);
    SimFault fault;
    fault.calls = random.OneIn(2) ? SimCall::kMutating : SimCall::kSync | SimCall::kSyncDirectory;
    fault.nth = 1 + random.Below(fault.calls == SimCall::kMutating ? 80 : 30);
    if (random.OneIn(4)) fault.code = StatusCode::kNoSpace;
    device_.FailCall(fault);
    OpenStore(device_, kNever, findings_).status().IgnoreError("it is expected to fail often");
    device_.ClearFaults();
    findings_.Take();
  }

  Status GoOn(size_t threads) {
    Random random(options_.seed);
    const uint32_t largest_write = options_.mix == OperationGenerator::Mix::kCopies ||
                                           options_.mix == OperationGenerator::Mix::kVersions
                                       ? 16u << 10
                                       : 4u << 10;
    for (unsigned thread = 0; thread < threads; ++thread) {
      Stepper stepper(*fs_, thread);
      OperationGenerator generator(random.Next(), largest_write, options_.mix);
      SILTFS_RETURN_IF_ERROR(TakeSteps(device_, stepper, thread, generator, options_.more_steps));
      if (options_.close) stepper.ReleaseAll();
    }
    if (options_.close) {
      SILTFS_RETURN_IF_ERROR(CloseStore(*fs_));
      Marks::AllDurable(device_);
    } else if (options_.cut_again) {
      SILTFS_RETURN_IF_ERROR(fs_->SyncAll());
      Marks::AllDurable(device_);
    }
    return Status::Ok();
  }

  Status Reopen(const History& after, size_t cut, size_t threads) {
    fs_.reset();
    if (!options_.cut_again && !options_.close) return Status::Ok();
    device_.PowerCut();
    SILTFS_RETURN_IF_ERROR(CheckUnopened("after it was used", true));
    SILTFS_ASSIGN_OR_RETURN(fs_, OpenStore(device_, kNever, findings_));
    SILTFS_ASSIGN_OR_RETURN(const auto digests, DigestAll(*fs_, threads));
    SILTFS_RETURN_IF_ERROR(after.Match(cut, digests).status());
    return NoFindings("opening it once more");
  }

  // Whether the last one of the steps that survived is a rollback.
  static bool EndsWithRollBack(const StepsByThread& surviving) {
    using Kind = Operation::Kind;
    std::vector<Operation> steps = surviving.front();
    std::erase_if(steps, [](const Operation& step) { return step.kind == Kind::kReopen; });
    return surviving.size() == 1 && !steps.empty() && steps.back().kind == Kind::kRollBack;
  }

  // Returns the digests of the trees that a read-only mount shows. The mount must write nothing. A
  // mount before the end of a rollback is refused; then there are no digests.
  Result<std::vector<uint64_t>> LookReadOnly(size_t threads) {
    device_.StartTrace();
    std::vector<uint64_t> digests;
    auto fs = OpenStore(device_, kNever, findings_, /*read_only=*/true);
    read_only_refused_ = fs.status().Is(StatusCode::kUnsupported);
    if (!read_only_refused_) {
      SILTFS_RETURN_IF_ERROR(fs.status());
      SILTFS_ASSIGN_OR_RETURN(digests, DigestAll(**fs, threads));
      SILTFS_RETURN_IF_ERROR((*fs)->Close());
    }
    SILTFS_RETURN_IF_ERROR(NoFindings("opening it read-only"));
    const SimTrace written = device_.TakeTrace();
    if (written.empty()) return digests;
    return Status(StatusCode::kCorruption,
                  "a read-only mount changed the store: " + Describe(written[0]));
  }

  // Checks the counters of inodes. No file is open, so inodes without names must be gone.
  Status CheckCounts() {
    SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, fs_->maintenance().GetStats());
    SILTFS_ASSIGN_OR_RETURN(const InodeCounts seen, CountInodes(*fs_));
    const InodeCounts counted{stats.files, stats.directories};
    if (counted == seen) return Status::Ok();
    return Status(StatusCode::kCorruption,
                  fmt::format("{} files and {} directories are counted, but {} and {} exist",
                              counted.files, counted.directories, seen.files, seen.directories));
  }

  // Checks the closed store as fsck does. The check must write nothing.
  Status CheckUnopened(std::string_view when, bool data) {
    CheckOptions check;
    check.store = kStorePath;
    check.data = data;
    check.copies = true;
    check.on_finding = [this](const Finding& finding) {
      findings_.Add(fmt::format("[{}] {}: {}", finding.code, finding.path, finding.message));
    };
    device_.StartTrace();
    SILTFS_RETURN_IF_ERROR(CheckStore(device_, check).status());
    const SimTrace written = device_.TakeTrace();
    if (!written.empty()) {
      return Status(StatusCode::kCorruption,
                    "the check changed the store: " + Describe(written[0]));
    }
    return NoFindings(fmt::format("the check {}", when));
  }

  Status NoFindings(std::string_view when) {
    const std::string findings = findings_.Take();
    if (findings.empty()) return Status::Ok();
    return Status(StatusCode::kCorruption, fmt::format("{} reported: {}", when, findings));
  }

  SimEnv& device_;
  const History& history_;
  const size_t cut_;
  const CutOptions options_;
  FindingLog findings_;
  bool read_only_refused_ = false;  // because a rollback was not finished
  std::unique_ptr<FileSystem> fs_;
};

}  // namespace

std::unique_ptr<SimEnv> DeviceAfter(const SimEnv& device, const CutChain::Link& link) {
  auto after = device.Fork();
  if (!link.killed) after->PowerCut(link.policy);
  return after;
}

CutOutcome CheckCut(SimEnv& device, const History& history, size_t cut, const CutOptions& options) {
  CutOutcome outcome;
  const Status status = CutCheck(device, history, cut, options).Run(outcome);
  if (!status.ok()) outcome.problem = status.ToString();
  return outcome;
}

CutOutcome CheckCutWhileMaking(SimEnv& device) {
  CutOutcome outcome;
  FindingLog findings;
  const auto opened = OpenStore(device, kNever, findings);
  if (!opened.ok() && !opened.status().Is(StatusCode::kNotFound)) {
    outcome.problem = "neither a complete store nor none: " + opened.status().ToString();
  }
  if (outcome.problem.empty()) outcome.problem = findings.Take();
  return outcome;
}

CrashPolicy PolicyFor(uint64_t nth, Random& random) {
  using Unsynced = CrashPolicy::Unsynced;
  static constexpr Unsynced kKinds[] = {Unsynced::kKeep, Unsynced::kPrefix, Unsynced::kSubset,
                                        Unsynced::kSubset, Unsynced::kGarble};
  CrashPolicy policy;
  policy.seed = random.Next();
  if (nth == 0) return policy;
  policy.unsynced = kKinds[random.Below(std::size(kKinds))];
  policy.names_in_any_order = random.OneIn(2);
  return policy;
}

std::string Describe(const CutChain::Link& link) {
  if (link.killed) return "killed";
  const CrashPolicy& policy = link.policy;
  static constexpr const char* kNames[] = {"drop", "keep", "prefix", "subset", "garble"};
  return fmt::format("{}{} seed {}", kNames[static_cast<size_t>(policy.unsynced)],
                     policy.names_in_any_order ? ", names in any order," : "", policy.seed);
}

Status SaveChain(const CutChain& chain, const std::string& path) {
  Encoder out;
  out.Raw(kChainMagic).U32(static_cast<uint32_t>(chain.links.size()));
  for (const CutChain::Link& link : chain.links) {
    const Bytes trace = EncodeTrace(link.trace);
    out.U64(trace.size()).Raw(trace).U64(link.cut);
    out.U8(static_cast<uint8_t>(link.policy.unsynced)).U64(link.policy.seed);
    out.U8(link.policy.names_in_any_order ? 1 : 0).U8(link.killed ? 1 : 0);
    out.U64(link.options.failing_open).U32(link.options.more_steps).U64(link.options.seed);
    out.U8(link.options.cut_again ? 1 : 0).U8(link.options.close ? 1 : 0);
    out.U8(static_cast<uint8_t>(link.options.mix));
  }
  const auto env = NewPosixEnv();
  const Status removed = env->RemoveFile(path);
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  SILTFS_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = OpenMode::kCreate}));
  SILTFS_RETURN_IF_ERROR(file->Write(0, out.view()));
  return file->Close();
}

Result<CutChain> LoadChain(const std::string& path) {
  const auto env = NewPosixEnv();
  SILTFS_ASSIGN_OR_RETURN(auto file, env->OpenFile(path, {.mode = OpenMode::kRead}));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  Bytes bytes(size);
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file->Read(0, bytes));
  Decoder in(ByteView(bytes).first(got));
  CutChain chain;
  const ByteView magic = in.Raw(kChainMagic.size());
  const uint32_t links = in.U32();
  const bool has_mix = AsText(magic) == kChainMagic;
  if (!in.ok() || (!has_mix && AsText(magic) != kOlderChainMagic)) {
    return Status(StatusCode::kCorruption, "holds no saved power cut").At(path);
  }
  for (uint32_t i = 0; i < links && in.ok(); ++i) {
    CutChain::Link link;
    SILTFS_ASSIGN_OR_RETURN(link.trace, DecodeTrace(in.Raw(in.U64())));
    link.cut = in.U64();
    const uint8_t unsynced = in.U8();
    link.policy.seed = in.U64();
    link.policy.names_in_any_order = in.U8() != 0;
    link.killed = in.U8() != 0;
    link.options.failing_open = in.U64();
    link.options.more_steps = in.U32();
    link.options.seed = in.U64();
    link.options.cut_again = in.U8() != 0;
    link.options.close = in.U8() != 0;
    const uint8_t mix = has_mix ? in.U8() : 0;
    link.options.mix = static_cast<OperationGenerator::Mix>(mix);
    if (unsynced > static_cast<uint8_t>(CrashPolicy::Unsynced::kGarble) ||
        mix > static_cast<uint8_t>(OperationGenerator::Mix::kQuotas) ||
        link.cut > link.trace.size()) {
      return Status(StatusCode::kCorruption, "holds a malformed power cut").At(path);
    }
    link.policy.unsynced = static_cast<CrashPolicy::Unsynced>(unsynced);
    chain.links.push_back(std::move(link));
  }
  if (!in.Done()) return Status(StatusCode::kCorruption, "is cut short").At(path);
  return chain;
}

Result<CutOutcome> ReplayChain(const CutChain& chain) {
  SimEnv empty;
  std::unique_ptr<SimEnv> device = empty.Fork();
  StepsByThread earlier;
  CutOutcome outcome;
  std::optional<History> before;
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const CutChain::Link& link = chain.links[i];
    if (earlier.empty()) earlier.resize(History::ThreadsIn(link.trace));
    SILTFS_ASSIGN_OR_RETURN(History history, History::Read(link.trace, earlier));
    for (size_t r = 0; r < link.cut; ++r) SILTFS_RETURN_IF_ERROR(device->Replay(link.trace[r]));
    device = DeviceAfter(*device, link);
    const auto used_up = device->Fork();
    const bool undecided = i > 0 && chain.links[i - 1].killed && link.cut <= history.first_cut();
    const History& judge = undecided ? *before : history;
    outcome =
        CheckCut(*used_up, judge, undecided ? chain.links[i - 1].cut : link.cut, link.options);
    if (!outcome.problem.empty()) return outcome;
    earlier = judge.Surviving(outcome.steps);
    before = std::move(history);
  }
  return outcome;
}

}  // namespace siltfs::testing

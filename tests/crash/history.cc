#include "tests/crash/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/base/coding.h"
#include "tests/crash/model_file_system.h"
#include "tests/crash/stepper.h"
#include "tests/crash/visible_tree.h"

namespace siltfs::testing {
namespace {

enum MarkType : uint8_t { kReady, kBegin, kEnd, kAllDurable, kMade, kInode };

void Enter(SimEnv& env, const Encoder& note) { env.Mark(note.view()); }

Status Illegal(std::string what) { return Status(StatusCode::kCorruption, std::move(what)); }

}  // namespace

void Marks::Made(SimEnv& env) { Enter(env, Encoder().U8(kMade)); }

void Marks::Ready(SimEnv& env, unsigned threads) { Enter(env, Encoder().U8(kReady).U32(threads)); }

void Marks::Begin(SimEnv& env, unsigned thread, const Operation& operation) {
  Enter(env, Encoder().U8(kBegin).U32(thread).Raw(EncodeOperation(operation)));
}

void Marks::End(SimEnv& env, unsigned thread, bool taken, const std::string& answer) {
  Enter(env, Encoder().U8(kEnd).U32(thread).U8(taken ? 1 : 0).Text16(answer));
}

void Marks::Inode(SimEnv& env, InodeNumber inode) { Enter(env, Encoder().U8(kInode).U64(inode)); }

void Marks::AllDurable(SimEnv& env) { Enter(env, Encoder().U8(kAllDurable)); }

unsigned History::ThreadsIn(const SimTrace& trace) {
  for (const SimRecord& record : trace) {
    if (record.kind != SimRecord::Kind::kMark) continue;
    Decoder in(record.data);
    if (in.U8() == kReady) return in.U32();
  }
  return 0;
}

Result<History> History::Read(const SimTrace& trace, const StepsByThread& earlier) {
  History history;
  history.earlier_ = earlier;
  history.threads_.resize(earlier.size());
  for (size_t at = 0; at < trace.size(); ++at) {
    if (trace[at].kind != SimRecord::Kind::kMark) continue;
    SILTFS_RETURN_IF_ERROR(history.ReadMark(trace[at].data, at));
  }
  for (unsigned thread = 0; thread < history.threads_.size(); ++thread) {
    SILTFS_RETURN_IF_ERROR(history.RunModel(thread));
  }
  std::sort(history.promises_.begin(), history.promises_.end(),
            [](const Promise& a, const Promise& b) { return a.at < b.at; });
  return history;
}

Status History::ReadMark(ByteView note, size_t at) {
  Decoder in(note);
  const uint8_t type = in.U8();
  if (type == kReady) first_cut_ = at;
  if (type == kMade) made_ = at;
  if (type == kReady || type == kMade) return Status::Ok();
  if (type == kAllDurable) {
    promises_.push_back({at, EndedBefore(at)});
    return Status::Ok();
  }
  if (type == kInode) {
    inodes_.emplace_back(at, in.U64());
    return Status::Ok();
  }
  const uint32_t thread = in.U32();
  if (!in.ok() || thread >= threads_.size()) return Illegal("the trace has a mark of no thread");
  std::vector<Step>& steps = threads_[thread].steps;
  if (type == kBegin) {
    SILTFS_ASSIGN_OR_RETURN(const Operation operation, DecodeOperation(in.Raw(in.remaining())));
    Step step;
    step.operation = operation;
    step.begin = at;
    steps.push_back(step);
    return Status::Ok();
  }
  // Steps that begin together end in the same order.
  const auto step = std::find_if(steps.begin(), steps.end(),
                                 [](const Step& begun) { return begun.end == kNever; });
  if (step == steps.end() || type != kEnd) return Illegal("the trace has a mark that does not fit");
  step->end = at;
  step->taken = in.U8() != 0;
  step->answer = in.Text16();
  return in.Done() ? Status::Ok() : Illegal("the trace has a malformed mark");
}

std::vector<size_t> History::EndedBefore(size_t at) const {
  std::vector<size_t> counts;
  for (const Thread& thread : threads_) {
    counts.push_back(
        static_cast<size_t>(std::count_if(thread.steps.begin(), thread.steps.end(),
                                          [at](const Step& step) { return step.end < at; })));
  }
  return counts;
}

// Runs the thread's steps on the model, and compares the model's answers with those in the trace.
// Also determines the promise of each sync.
Status History::RunModel(unsigned number) {
  int64_t now = kFirstTime;
  const Times times = TimesWith(threads_.size());
  ModelFileSystem model([&now] { return now; },
                        [&](FileSystem& shown) {
                          const auto text = DescribeForSnapshot(shown, number, times);
                          return text.ok() ? *text : text.status().ToString();
                        });
  Stepper stepper(model, number);
  SILTFS_RETURN_IF_ERROR(stepper.Begin());
  for (const Operation& operation : earlier_[number]) {
    if (operation.kind == Operation::Kind::kReopen) stepper.ReleaseAll();
    now = operation.time;
    stepper.Step(operation);
  }
  Thread& thread = threads_[number];
  std::map<InodeNumber, size_t> last_change;  // number of steps up to the inode's last change
  SILTFS_ASSIGN_OR_RETURN(uint64_t digest, DigestTree(model, number, times));
  thread.digests.push_back(digest);
  for (size_t i = 0; i < thread.steps.size(); ++i) {
    const Step& step = thread.steps[i];
    if (step.operation.kind == Operation::Kind::kReopen) stepper.ReleaseAll();
    if (step.taken) {
      now = step.operation.time;
      const std::string answer = stepper.Step(step.operation);
      if (answer != step.answer) {
        return Illegal(fmt::format("thread {} step {}, {}: answered \"{}\", the model \"{}\"",
                                   number, i, Describe(step.operation), step.answer, answer));
      }
      const bool syncs_all = step.operation.kind == Operation::Kind::kSyncAll;
      const bool syncs = syncs_all || step.operation.kind == Operation::Kind::kFsync;
      if (syncs && stepper.last().ok() && step.end != kNever && !stepper.touched().empty()) {
        Promise promise{step.end, std::vector<size_t>(threads_.size(), 0)};
        promise.steps[number] = last_change[stepper.touched().front()];
        promises_.push_back(std::move(promise));
      }
      if (syncs_all && stepper.last().ok() && step.end != kNever) {
        promises_.push_back({step.end, EndedBefore(step.begin)});
      }
      const bool is_durable = IsOfSnapshots(step.operation.kind) || IsOfQuotas(step.operation.kind);
      if (is_durable && stepper.last().ok() && step.end != kNever) {
        Promise promise{step.end, EndedBefore(step.begin)};
        promise.steps[number] = i + 1;
        promises_.push_back(std::move(promise));
      }
      const uint64_t before = digest;
      SILTFS_ASSIGN_OR_RETURN(digest, DigestTree(model, number, times));
      // A step without effect, for example a refused one, need not survive a sync.
      if (digest != before) {
        for (InodeNumber inode : stepper.touched()) last_change[inode] = i + 1;
      }
    }
    thread.digests.push_back(digest);
  }
  return Status::Ok();
}

size_t History::FindSteps(unsigned number, size_t least, size_t cut, uint64_t digest) const {
  const Thread& thread = threads_[number];
  for (size_t count = least; count < thread.digests.size(); ++count) {
    if (count > 0 && thread.steps[count - 1].begin >= cut) break;
    if (thread.digests[count] == digest) return count;
  }
  return kNever;
}

Result<std::vector<size_t>> History::Match(size_t cut, const std::vector<uint64_t>& digests) const {
  std::vector<size_t> least(threads_.size(), 0);
  for (const Promise& promise : promises_) {
    if (promise.at >= cut) break;
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::max(least[i], promise.steps[i]);
  }
  const std::vector<size_t> promised = least;
  std::vector<size_t> found(threads_.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < threads_.size(); ++i) {
      found[i] = FindSteps(i, least[i], cut, digests[i]);
      if (found[i] != kNever) continue;
      const size_t before = FindSteps(i, 0, cut, digests[i]);
      return Illegal(fmt::format(
          "thread {}: the tree is {}, but {} steps were promised and the order demands {}", i,
          before == kNever ? "that of no prefix" : fmt::format("that of {} steps", before),
          promised[i], least[i]));
    }
    // If a step survives, all steps that had ended when it began must survive.
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (found[i] == 0) continue;
      const std::vector<size_t> before = EndedBefore(threads_[i].steps[found[i] - 1].begin);
      for (size_t j = 0; j < before.size(); ++j) {
        if (before[j] > std::max(least[j], found[j])) {
          least[j] = before[j];
          changed = true;
        }
      }
    }
  }
  return found;
}

bool History::InMaintenance(size_t at) const {
  return In(at, [](Operation::Kind kind) {
    return kind == Operation::Kind::kRecompress || kind == Operation::Kind::kCollect;
  });
}

bool History::In(size_t at, const std::function<bool(Operation::Kind)>& is_of_kind) const {
  for (const Thread& thread : threads_) {
    for (const Step& step : thread.steps) {
      if (step.begin < at && at <= step.end && is_of_kind(step.operation.kind)) return true;
    }
  }
  return false;
}

InodeNumber History::HighestInode(size_t cut) const {
  InodeNumber highest = 0;
  for (const auto& [at, inode] : inodes_) {
    if (at < cut) highest = std::max(highest, inode);
  }
  return highest;
}

InodeNumber History::LowestInode() const {
  InodeNumber lowest = UINT64_MAX;
  for (const auto& numbered : inodes_) lowest = std::min(lowest, numbered.second);
  return lowest;
}

StepsByThread History::Surviving(const std::vector<size_t>& steps) const {
  StepsByThread surviving = earlier_;
  for (size_t i = 0; i < surviving.size(); ++i) {
    for (size_t s = 0; s < steps[i]; ++s) {
      if (threads_[i].steps[s].taken) surviving[i].push_back(threads_[i].steps[s].operation);
    }
    surviving[i].push_back(Operation{});  // the reopening
  }
  return surviving;
}

}  // namespace siltfs::testing

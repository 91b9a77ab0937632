// Tests of the judgement of the crash tests: it must detect illegal states, and a failed cut must
// be reproducible.
#include "store/env/posix_env.h"
#include "tests/crash/cut.h"
#include "tests/crash/injection.h"
#include "tests/crash/rot.h"
#include "tests/crash/sequence.h"
#include "tests/crash/sequence_cuts.h"
#include "tests/crash/visible_tree.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

Operation Create(const std::string& name) {
  Operation operation;
  operation.kind = Kind::kCreate;
  operation.name = name;
  return operation;
}
Operation Append(uint32_t size, uint64_t seed) {
  Operation operation;
  operation.kind = Kind::kAppend;
  operation.size = size;
  operation.data_seed = seed;
  return operation;
}
Operation Plain(Kind kind) {
  Operation operation;
  operation.kind = kind;
  return operation;
}

// Hand-written steps of one or more threads. Trees in memory give the correct answers.
class Script {
 public:
  explicit Script(unsigned threads) : times_(TimesWith(threads)) {
    env_.StartTrace();
    Marks::Ready(env_, threads);
    for (unsigned i = 0; i < threads; ++i) {
      steppers_.emplace_back(trees_, i);
      REQUIRE_OK(steppers_.back().Begin());
      digests_.emplace_back();
      Note(i);
    }
  }

  void Begin(unsigned thread, const Operation& operation) {
    Marks::Begin(env_, thread, operation);
    now_ = operation.time;
    answer_ = steppers_[thread].Step(operation);
    Note(thread);
  }
  void End(unsigned thread) { Marks::End(env_, thread, true, answer_); }
  void Step(unsigned thread, const Operation& operation) {
    Begin(thread, operation);
    End(thread);
  }
  void EndWith(unsigned thread, const std::string& answer) {
    Marks::End(env_, thread, true, answer);
  }
  void AllDurable() { Marks::AllDurable(env_); }

  // Judges a cut at the end of the trace. The cut has left the state after the first steps[i] steps
  // of each thread i.
  Status Judge(const std::vector<size_t>& steps) {
    std::vector<uint64_t> digests;
    for (size_t i = 0; i < steps.size(); ++i) digests.push_back(digests_[i][steps[i]]);
    auto matched = JudgeTrees(digests);
    if (!matched.ok()) return std::move(matched).status();
    REQUIRE(*matched == steps);
    return Status::Ok();
  }
  Result<std::vector<size_t>> JudgeTrees(const std::vector<uint64_t>& digests) {
    if (trace_.empty()) trace_ = env_.TakeTrace();
    SILTFS_ASSIGN_OR_RETURN(const History history,
                            History::Read(trace_, StepsByThread(steppers_.size())));
    return history.Match(trace_.size(), digests);
  }

 private:
  void Note(unsigned thread) {
    auto digest = DigestTree(trees_, thread, times_);
    REQUIRE_OK(digest);
    digests_[thread].push_back(*digest);
  }

  const Times times_;
  int64_t now_ = kFirstTime;
  SimEnv env_;
  MemoryFileSystem trees_{[this] { return now_; }};
  std::vector<Stepper> steppers_;
  std::vector<std::vector<uint64_t>> digests_;
  std::string answer_;
  SimTrace trace_;
};

}  // namespace

TEST_CASE("without a promise exactly the prefixes are legal") {
  Script script(1);
  script.Step(0, Create("a"));
  script.Step(0, Append(100, 3));
  script.Step(0, Append(100, 4));
  for (size_t steps = 0; steps <= 3; ++steps) REQUIRE_OK(script.Judge({steps}));
  int64_t now = kFirstTime;
  MemoryFileSystem mixed([&now] { return now; });  // the second write survives without the first
  Stepper stepper(mixed, 0);
  REQUIRE_OK(stepper.Begin());
  now = 0;
  stepper.Step(Create("a"));
  stepper.Step(Append(100, 4));
  auto digest = DigestTree(mixed, 0, Times::kSeen);
  REQUIRE_OK(digest);
  REQUIRE_CODE(script.JudgeTrees({*digest}).status(), kCorruption);
}

TEST_CASE("steps promised by a sync or a close must survive") {
  Script script(2);
  script.Step(0, Create("a"));
  script.Step(1, Create("b"));
  SECTION("fsync: the file, and all steps that ended before the file's last change began") {
    script.Step(0, Append(50, 3));
    script.Step(0, Plain(Kind::kFsync));
    REQUIRE_OK(script.Judge({2, 1}));
    REQUIRE_CODE(script.Judge({1, 1}), kCorruption);
    REQUIRE_CODE(script.Judge({2, 0}), kCorruption);
  }
  SECTION("sync") {
    script.Step(0, Plain(Kind::kSyncAll));
    REQUIRE_OK(script.Judge({1, 1}));
    REQUIRE_CODE(script.Judge({1, 0}), kCorruption);
    REQUIRE_CODE(script.Judge({0, 1}), kCorruption);
  }
  SECTION("close") {
    script.AllDurable();
    REQUIRE_CODE(script.Judge({1, 0}), kCorruption);
  }
}

TEST_CASE("a sync does not promise a step that changed nothing") {
  Script script(2);
  script.Step(0, Create("a"));
  script.Step(0, Plain(Kind::kFsync));
  script.Step(1, Create("b"));
  script.Step(0, Create("a"));  // refused: it exists
  Operation open = Create("a");
  open.kind = Kind::kOpen;
  script.Step(0, open);
  script.Step(0, Plain(Kind::kFsync));  // has no effect
  REQUIRE_OK(script.Judge({1, 0}));
  REQUIRE_CODE(script.Judge({0, 0}), kCorruption);
}

TEST_CASE("a step does not survive without the steps that ended before it began") {
  Script script(2);
  script.Step(0, Create("a"));
  script.Step(1, Create("b"));
  script.Begin(0, Append(10, 3));  // at the same time as the next one
  script.Step(1, Append(10, 3));
  script.EndWith(0, "ok");
  REQUIRE_OK(script.Judge({0, 0}));
  REQUIRE_OK(script.Judge({1, 0}));
  REQUIRE_CODE(script.Judge({0, 1}), kCorruption);
  REQUIRE_OK(script.Judge({1, 1}));
  REQUIRE_OK(script.Judge({1, 2}));
  REQUIRE_OK(script.Judge({2, 1}));
  REQUIRE_CODE(script.Judge({2, 0}), kCorruption);
}

TEST_CASE("an answer that differs from the model's is illegal") {
  Script script(1);
  script.Step(0, Create("a"));
  script.Begin(0, Create("a"));
  script.EndWith(0, "ok");
  REQUIRE_CODE(script.Judge({1}), kCorruption);
}

TEST_CASE("of steps that begin together any number may survive, in their order") {
  std::vector<Operation> puts;
  for (const char* name : {"n1", "n2", "n3"}) {
    puts.push_back(Plain(Kind::kPut));
    puts.back().name = name;
    puts.back().data_seed = static_cast<uint64_t>(name[1] - '0');
  }
  Script script(1);
  for (const Operation& put : puts) script.Begin(0, put);
  for (size_t i = 0; i < puts.size(); ++i) script.EndWith(0, "ok made");
  for (size_t steps = 0; steps <= puts.size(); ++steps) REQUIRE_OK(script.Judge({steps}));
  int64_t now = 0;
  MemoryFileSystem mixed([&now] { return now; });  // the second entry survives without the first
  now = kFirstTime;
  Stepper stepper(mixed, 0);
  REQUIRE_OK(stepper.Begin());
  now = 0;
  stepper.Step(puts[1]);
  auto digest = DigestTree(mixed, 0, Times::kSeen);
  REQUIRE_OK(digest);
  REQUIRE_CODE(script.JudgeTrees({*digest}).status(), kCorruption);
}

TEST_CASE("a failed cut can be replayed from its file under any thread schedule") {
  TemporaryDirectory directory;
  CutChain failed;
  uint64_t legal = 0;
  CutSequence(4, Workload::kPrograms, 150, Injection::kSkipSegmentSync,
              [&](const CutReport& report, const CutChain& chain) {
                if (report.problem.empty()) ++legal;
                if (!report.problem.empty() && failed.links.empty()) failed = chain;
              });
  REQUIRE(legal > 0);
  REQUIRE_FALSE(failed.links.empty());
  const std::string path = directory / "cut";
  REQUIRE_OK(SaveChain(failed, path));
  for (int again = 0; again < 3; ++again) {
    auto chain = LoadChain(path);
    REQUIRE_OK(chain);
    auto outcome = ReplayChain(*chain);
    REQUIRE_OK(outcome);
    REQUIRE_FALSE(outcome->problem.empty());
  }
  const auto env = NewPosixEnv();
  auto file = env->OpenFile(path, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Truncate(*(*file)->Size() - 1));
  REQUIRE_CODE(LoadChain(path), kCorruption);
}

}  // namespace siltfs::testing

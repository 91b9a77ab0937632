// Tests of the generated steps on snapshots, and of the model that gives their results.
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/crash/model_file_system.h"
#include "tests/crash/operation_data.h"
#include "tests/crash/operation_generator.h"
#include "tests/crash/sequence.h"
#include "tests/crash/stepper.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;
using Mix = OperationGenerator::Mix;

constexpr uint64_t kSeeds = 300;
constexpr int kSteps = 60;  // as in a sequence of usual length

// Takes the steps of several sequences on models, and counts the answers.
class Answers {
 public:
  explicit Answers(Mix mix) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      int64_t now = kFirstTime;
      ModelFileSystem model([&now] { return now; }, [](FileSystem&) { return std::string("-"); });
      Stepper stepper(model, 0);
      REQUIRE_OK(stepper.Begin());
      OperationGenerator generator(seed, 8192, mix);
      for (int step = 0; step < kSteps; ++step) {
        const Operation operation = generator.Next();
        now = operation.time;
        Count(operation, stepper.Step(operation));
      }
    }
  }

  bool Has(Kind kind, const std::string& answer) const { return counts_.contains({kind, answer}); }
  // Of transfers that are not cut on purpose.
  int64_t ShareOfReceipts() const { return 100 * received_ / whole_; }
  int64_t ShareOf(Kind kind) const { return 100 * ok_.at(kind) / all_.at(kind); }
  const std::map<Transfer, std::set<std::string>>& transfers() const { return transfers_; }

 private:
  void Count(const Operation& operation, const std::string& answer) {
    const bool ok = answer.starts_with("ok");
    ++counts_[{operation.kind, answer}];
    ++all_[operation.kind];
    ok_[operation.kind] += ok ? 1 : 0;
    if (operation.kind != Kind::kReceive) return;
    const Transfer transfer = TransferOf(operation.data_seed);
    transfers_[transfer].insert(answer);
    if (transfer == Transfer::kCutShort || transfer == Transfer::kAbandoned) return;
    ++whole_;
    received_ += ok ? 1 : 0;
  }

  std::map<std::pair<Kind, std::string>, int64_t> counts_;
  std::map<Kind, int64_t> all_;
  std::map<Kind, int64_t> ok_;
  std::map<Transfer, std::set<std::string>> transfers_;
  int64_t whole_ = 0;
  int64_t received_ = 0;
};

TEST_CASE("most generated steps on snapshots succeed") {
  const Answers answers(Mix::kSnapshotsAlone);
  CAPTURE(answers.ShareOfReceipts(), answers.ShareOf(Kind::kReceive),
          answers.ShareOf(Kind::kCloneFromSnapshot), answers.ShareOf(Kind::kRollBack));
  CHECK(answers.ShareOfReceipts() >= 70);
  CHECK(answers.ShareOf(Kind::kCloneFromSnapshot) >= 60);
  CHECK(answers.ShareOf(Kind::kRollBack) >= 50);
}

TEST_CASE("generated steps on snapshots reach every outcome of every call") {
  const Answers answers(Mix::kSnapshotsAlone);
  const std::pair<Kind, const char*> wanted[] = {
      {Kind::kSnapshot, "ok"},
      {Kind::kSnapshot, "already exists"},
      {Kind::kRenameSnapshot, "ok"},
      {Kind::kRenameSnapshot, "already exists"},
      {Kind::kRenameSnapshot, "not found"},
      {Kind::kDeleteSnapshot, "ok"},
      {Kind::kDeleteSnapshot, "not found"},
      {Kind::kReceive, "ok"},
      {Kind::kReceive, "interrupted"},
      {Kind::kReceive, "abandoned"},
      {Kind::kReceive, "already exists"},
      {Kind::kReceive, "not found"},
      {Kind::kReceive, "invalid argument"},
      {Kind::kCloneFromSnapshot, "ok"},
      {Kind::kCloneFromSnapshot, "ok with directories"},
      {Kind::kCloneFromSnapshot, "already exists"},
      {Kind::kCloneFromSnapshot, "not found"},
      {Kind::kRollBack, "ok"},
      {Kind::kRollBack, "already exists"},
      {Kind::kRollBack, "not found"},
      {Kind::kRollBack, "in use"},
      {Kind::kRollBack, "invalid argument"},
  };
  for (const auto& [kind, answer] : wanted) {
    Operation operation;
    operation.kind = kind;
    CAPTURE(Describe(operation), answer);
    CHECK(answers.Has(kind, answer));
  }
  for (const Transfer transfer : {Transfer::kOneWay, Transfer::kTwoWay, Transfer::kResumed}) {
    CAPTURE(transfer);
    CHECK(answers.transfers().at(transfer).contains("ok"));
  }
}

TEST_CASE("only sequences of one thread are rolled back") {
  const Answers answers(Mix::kSnapshots);
  CHECK(answers.Has(Kind::kReceive, "ok"));
  CHECK_FALSE(answers.Has(Kind::kRollBack, "ok"));
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const SequencePlan plan = PlanSequence(seed, Workload::kSnapshots);
    CHECK((plan.mix == Mix::kSnapshotsAlone) == (plan.threads == 1));
  }
}

}  // namespace
}  // namespace siltfs::testing

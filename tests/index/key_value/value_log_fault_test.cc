// Failing calls and full disks.
#include "value_log_fixture.h"

namespace siltfs::testing {
namespace {

struct Outcome {
  std::vector<Record> appended;
  std::vector<Record> synced;
  int failures = 0;
};

// Appends, syncs now and then, and seals; repeats no failed call.
Outcome Live(ValueLog& log, uint64_t seed) {
  Outcome outcome;
  Random random(seed);
  for (uint64_t number = 0; number < 50; ++number) {
    const size_t size = RandomSize(random, 1500);
    auto location = log.Append(NameOf(number), BytesOf(number, size));
    if (location.ok()) {
      outcome.appended.push_back({number, size, *location});
    } else {
      ++outcome.failures;
    }
    if (!random.OneIn(8)) continue;
    const Status synced = random.OneIn(3) ? log.SealOpenSegment() : log.Sync();
    if (synced.ok()) {
      outcome.synced = outcome.appended;
    } else {
      ++outcome.failures;
    }
  }
  const Status synced = log.Sync();
  if (synced.ok()) {
    outcome.synced = outcome.appended;
  } else {
    ++outcome.failures;
  }
  return outcome;
}

}  // namespace

TEST_CASE("a failing call is returned as an error and loses no synced record") {
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool sticky = GENERATE(false, true);
  const bool power_cut = GENERATE(false, true);
  for (uint64_t nth = 1;; ++nth) {
    INFO("call " << nth << " fails with " << StatusCodeName(code) << ", sticky " << sticky
                 << ", power cut after it " << power_cut);
    auto env = NewDevice();
    const uint64_t before = env->Calls(SimCall::kMutating);
    env->FailCall({.calls = SimCall::kMutating,
                   .nth = nth,
                   .code = code,
                   .sticky = sticky,
                   .path_part = "",
                   .bytes_written = nth % 3 * 100});
    Outcome outcome;
    bool failed = false;
    {
      auto log = ValueLog::Open(*env, SmallOptions());
      failed = !log.ok();
      if (log.ok()) {
        outcome = Live(**log, 5);
        RequireReadAll(**log, outcome.appended);
        failed = outcome.failures > 0;
        const Status failure = (*log)->failure();
        if (!failure.ok()) {
          // The failure is permanent.
          CHECK((*log)->Append(NameOf(1), BytesOf(1, 1)).status().ToString() == failure.ToString());
          CHECK((*log)->Sync().ToString() == failure.ToString());
          CHECK((*log)->SealOpenSegment().ToString() == failure.ToString());
          CHECK((*log)->Remove(1).ToString() == failure.ToString());
        }
      }
    }
    if (env->Calls(SimCall::kMutating) - before < nth) break;
    REQUIRE(failed);
    env->ClearFaults();
    if (power_cut) env->PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = nth});
    auto log = OpenLog(*env, SmallOptions());
    RequireReadAll(*log, outcome.synced);
    for (const Record& record : outcome.appended) {
      if (log->Holds(record.name(), record.location)) RequireRead(*log, record);
    }
    const Record next = AppendRecord(*log, 1000, 100);
    for (const Record& record : outcome.appended) {
      REQUIRE(record.location.segment < next.location.segment);
    }
    REQUIRE_OK(log->Sync());
    RequireRead(*log, next);
  }
}

TEST_CASE("opening fails with the error of a failed call, and succeeds after the fault has ended") {
  const StatusCode code = GENERATE(StatusCode::kIoError, StatusCode::kNoSpace);
  const bool power_cut = GENERATE(false, true);
  for (uint64_t nth = 1;; ++nth) {
    INFO("call " << nth << " of opening fails with " << StatusCodeName(code));
    auto env = NewDevice();
    Outcome outcome;
    outcome = Live(*OpenLog(*env, SmallOptions()), 6);
    REQUIRE(outcome.failures == 0);
    env->FailCall({.calls = SimCall::kAny, .nth = nth, .code = code, .path_part = ""});
    const uint64_t before = env->Calls(SimCall::kAny);
    {
      auto log = ValueLog::Open(*env, SmallOptions());
      if (env->Calls(SimCall::kAny) - before < nth) {
        REQUIRE_OK(log);
        break;
      }
      REQUIRE_FALSE(log.ok());
      // A failed sync is permanent, whatever its code.
      REQUIRE((log.status().Is(code) || log.status().Is(StatusCode::kIoError)));
    }
    env->ClearFaults();
    if (power_cut) env->PowerCut();
    RequireReadAll(*OpenLog(*env, SmallOptions()), outcome.synced);
  }
}

TEST_CASE("a failing read is returned as an error, and the next one is right") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record record = AppendRecord(*log, 1, 100000);
  REQUIRE_OK(log->SealOpenSegment());
  auto calls = [&] { return env->Calls(SimCall::kRead | SimCall::kOpen); };
  uint64_t nth = 1;
  for (;; ++nth) {
    log = OpenLog(*env, SmallOptions());
    const uint64_t before = calls();
    env->FailCall({.calls = SimCall::kRead | SimCall::kOpen, .nth = nth, .path_part = ""});
    auto bytes = log->Read(record.name(), record.location);
    env->ClearFaults();
    if (calls() - before < nth) {
      REQUIRE_OK(bytes);
      break;
    }
    REQUIRE_CODE(bytes, kIoError);
    RequireRead(*log, record);
    CHECK(log->stats().damaged == 0);
    REQUIRE_OK(log->failure());
  }
  CHECK(nth >= 3);
}

TEST_CASE("a log continues without loss when a full disk has room again") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  std::vector<Record> records;
  uint64_t refused = 0;
  Random random(4);
  for (uint64_t pages = 0; pages < 20; ++pages) {
    INFO("room for " << pages << " pages");
    auto space = env->GetDiskSpace(kLogDirectory);
    REQUIRE_OK(space);
    env->SetCapacity(space->total_bytes - space->free_bytes + pages * 4096);
    for (int step = 0; step < 40; ++step) {
      const uint64_t number = records.size();
      const size_t size = RandomSize(random, 3000);
      auto location = log->Append(NameOf(number), BytesOf(number, size));
      if (location.ok()) {
        records.push_back({number, size, *location});
      } else {
        REQUIRE_CODE(location, kNoSpace);
        ++refused;
      }
    }
    REQUIRE(log->stats().records == records.size());
    RequireReadAll(*log, records);
    const Status full = log->Sync();
    if (!full.ok()) REQUIRE_CODE(full, kNoSpace);
    const Status sealed = log->SealOpenSegment();
    if (!sealed.ok()) REQUIRE_CODE(sealed, kNoSpace);
    REQUIRE_OK(log->failure());
    env->SetCapacity(SimEnv::kUnlimited);
    if (pages % 3 == 0) {
      records.push_back(AppendRecord(*log, records.size(), RandomSize(random, 3000)));
    }
    REQUIRE_OK(log->Sync());
    RequireReadAll(*log, records);
  }
  CHECK(refused > 20);
  log.reset();
  env->PowerCut();
  log = OpenLog(*env, SmallOptions());
  RequireReadAll(*log, records);
  CHECK(log->stats().records == records.size());
  CHECK(log->stats().damaged == 0);
}

TEST_CASE("opening needs the room to seal an unsealed segment") {
  auto env = NewDevice();
  std::vector<Record> records;
  {
    auto log = OpenLog(*env, SmallOptions());
    for (uint64_t number = 0; number < 20; ++number) {
      records.push_back(AppendRecord(*log, number, 300));
    }
    REQUIRE_OK(log->Sync());
  }
  auto space = env->GetDiskSpace(kLogDirectory);
  REQUIRE_OK(space);
  env->SetCapacity(space->total_bytes - space->free_bytes);
  REQUIRE_CODE(ValueLog::Open(*env, SmallOptions()), kNoSpace);
  ValueLogOptions reading = SmallOptions();
  reading.read_only = true;
  RequireReadAll(*OpenLog(*env, reading), records);
  env->SetCapacity(SimEnv::kUnlimited);
  RequireReadAll(*OpenLog(*env, SmallOptions()), records);
}

TEST_CASE("a segment is unchanged if its removal fails") {
  auto env = NewDevice();
  auto log = OpenLog(*env, SmallOptions());
  const Record record = AppendRecord(*log, 1, 300);
  REQUIRE_OK(log->SealOpenSegment());
  env->FailCall({.calls = SimCall::kRemove, .path_part = ".seg"});
  REQUIRE_CODE(log->Remove(record.location.segment), kIoError);
  RequireRead(*log, record);
  REQUIRE_OK(log->Remove(record.location.segment));
  REQUIRE_CODE(log->Read(record.name(), record.location), kNotFound);
}

}  // namespace siltfs::testing

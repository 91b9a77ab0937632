// siltfs bucket verify
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "fs/bucket/store_bucket.h"
#include "fs/bucket/verify_bucket.h"
#include "fs/open/segment_check.h"
#include "store/base/progress_meter.h"
#include "store/superblock/superblock.h"
#include "tools/siltfs/bucket_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_bucket_options.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct BucketVerifyArguments {
  std::string place;
  BucketArguments bucket;
  bool data = false;
  bool json = false;
  bool quiet = false;
};

// What is compared.
struct Subject {
  std::string store;  // empty: only the bucket
  BucketConfig config;
  bool compares_store = false;  // with the metadata in the store's directory
};

Result<Subject> FindSubject(Env& env, const BucketVerifyArguments& arguments) {
  Subject subject;
  if (NamesBucket(arguments.place)) {
    BucketArguments named = arguments.bucket;
    named.bucket = arguments.place;
    SILTFS_ASSIGN_OR_RETURN(subject.config, ApplyBucketOptions(named, {}));
    return subject;
  }
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(arguments.place));
  if (mounted) {
    subject.store = mounted->store;
  } else {
    SILTFS_ASSIGN_OR_RETURN(subject.store, StoreAt(arguments.place));
    subject.compares_store = true;
  }
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, subject.store, StoreAccess::kReadOnly));
  if (!state.superblock.in_bucket()) {
    return Status(StatusCode::kInvalidArgument,
                  "its segments are in its directory: check it with siltfs fsck, or name a bucket "
                  "as s3://NAME/PREFIX")
        .At(subject.store);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto config, ReadBucketConfig(env, subject.store));
  if (!config) return CheckPlaceIsKnown(state.superblock, nullptr, subject.store);
  subject.config = *config;
  if (arguments.bucket.empty()) return subject;
  // How the service is reached from here may differ.
  SILTFS_ASSIGN_OR_RETURN(subject.config, ApplyBucketOptions(arguments.bucket, *config));
  return subject;
}

Result<BucketVerifyReport> Verify(Env& env, const Subject& subject,
                                  const BucketVerifyOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto objects, OpenObjects(env, subject.config));
  if (!subject.compares_store) return VerifyBucket(*objects, options);
  return OpenWhenFree(subject.store,
                      [&] { return VerifyBucketOfStore(env, *objects, subject.store, options); });
}

Json ToJson(const std::vector<BucketFinding>& findings) {
  Json listed = Json::array();
  for (const BucketFinding& finding : findings) {
    listed.push_back({{"code", finding.code}, {"key", finding.key}, {"message", finding.message}});
  }
  return listed;
}

Json StoreToJson(const std::string& store) { return store.empty() ? Json() : Json(store); }

Json ToJson(const Subject& subject, const BucketVerifyReport& report, bool data) {
  return {{"store", StoreToJson(subject.store)},
          {"bucket", subject.config.address},
          {"clean", report.errors == 0},
          {"data", data},
          {"error", nullptr},
          {"finding_count", report.errors},
          {"findings", ToJson(report.findings)},
          {"leftover_count", report.leftover_objects},
          {"leftovers", ToJson(report.leftovers)},
          {"checked",
           {{"objects", report.objects},
            {"bytes", report.bytes},
            {"segments", report.segments},
            {"segment_bytes", report.segment_bytes},
            {"waiting_segments", report.waiting_segments},
            {"log_objects", report.log_objects},
            {"checkpoints", report.checkpoints},
            {"tails", report.tails},
            {"data_bytes", report.data_bytes},
            {"commit", report.commit},
            {"commits_behind", report.commits_behind ? Json(*report.commits_behind) : Json()}}}};
}

std::string Format(const Subject& subject, const BucketVerifyReport& report, bool data) {
  std::string text;
  for (const auto* list : {&report.findings, &report.leftovers}) {
    for (const BucketFinding& finding : *list) {
      text += fmt::format("{}: {}: {}\n", finding.code, Printable(finding.key),
                          Printable(finding.message));
    }
  }
  const std::string outcome = report.errors == 0   ? "clean"
                              : report.errors == 1 ? "1 finding"
                                                   : fmt::format("{} findings", report.errors);
  std::string rest;
  if (data) rest += fmt::format(", {} bytes of them verified", report.data_bytes);
  if (report.leftover_objects > 0)
    rest += fmt::format("; {} objects are left over", report.leftover_objects);
  if (report.waiting_segments > 0)
    rest += fmt::format("; {} segments wait for their upload", report.waiting_segments);
  if (report.commits_behind.value_or(0) > 0)
    rest += fmt::format("; the bucket is {} commits behind", *report.commits_behind);
  return text + fmt::format("{}: {}: {} objects, {} segments, {} log objects, {} checkpoints{}\n",
                            Printable(subject.config.address), outcome, report.objects,
                            report.segments, report.log_objects, report.checkpoints, rest);
}

FsckCode Stop(const std::string& place, const Status& status, Surroundings& surroundings) {
  SayFailure(surroundings, status.ToString(),
             {{"store", NamesBucket(place) ? Json() : Json(place)},
              {"clean", nullptr},
              {"finding_count", 0},
              {"findings", Json::array()}},
             ExitCodeOf(status));
  return ToFsckCode(status);
}

FsckCode RunBucketVerify(const BucketVerifyArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "bucket verify", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Stop(arguments.place, command.status(), surroundings);
  const auto subject = FindSubject(surroundings.env, arguments);
  if (!subject.ok()) return Stop(arguments.place, subject.status(), surroundings);
  ProgressMeter meter;
  (*command)->Observe([&meter] { return meter.Now(); });
  BucketVerifyOptions options;
  options.data = arguments.data;
  options.on_progress = [&meter](std::string_view step, uint64_t done, uint64_t total) {
    meter.Put({step, done, total});
  };
  options.interrupted = [&command] { return (*command)->interrupted(); };
  const auto report = Verify(surroundings.env, *subject, options);
  (*command)->Observe({});
  (*command)->End();
  if (!report.ok()) {
    return Stop(
        arguments.place,
        ExplainInterruption(ExplainLock(report.status(), subject->store), "nothing has changed"),
        surroundings);
  }
  if (arguments.json) {
    PrintJson(surroundings, ToJson(*subject, *report, arguments.data));
  } else {
    surroundings.out << Format(*subject, *report, arguments.data) << std::flush;
  }
  return report->errors == 0 ? FsckCode::kClean : FsckCode::kUncorrected;
}

}  // namespace

std::function<FsckCode()> ConfigureBucketVerify(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<BucketVerifyArguments>();
  app.add_option("STORE|MOUNTPOINT|ADDRESS", arguments->place,
                 "The store, or s3://NAME/PREFIX on a machine without the store")
      ->required();
  AddServiceOptions(app, arguments->bucket);
  app.add_flag("--data", arguments->data, "Read all bytes of all segments, too");
  app.add_flag("--json", arguments->json,
               "Print one JSON document instead of one line for each finding");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunBucketVerify(*arguments, surroundings); };
}

}  // namespace siltfs

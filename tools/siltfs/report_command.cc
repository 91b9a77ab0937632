// siltfs report
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "fs/control/client.h"
#include "fs/control/survey_session.h"
#include "fs/interface/file_system.h"
#include "fs/interface/store_maintenance.h"
#include "store/env/process.h"
#include "store/env/published_file.h"
#include "tools/report/store_report.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/output_file.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/store_with_bucket.h"
#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct ReportArguments {
  std::string place;
  std::string output;
  bool quiet = false;
};

// Takes over the progress, and fails once a signal asks the process to end.
class Observer {
 public:
  explicit Observer(LongCommand& command) : command_(command) {
    command_.Observe([this] { return meter_.Now(); });
  }
  ~Observer() { command_.Observe({}); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  SurveyProgressFunction function() {
    return [this](const SurveyProgress& progress) -> Status {
      if (command_.interrupted())
        return {StatusCode::kInterrupted, "the report was interrupted; no file was changed"};
      meter_.Put({progress.name, progress.done, progress.total});
      return Status::Ok();
    };
  }

 private:
  LongCommand& command_;
  ProgressMeter meter_;
};

Result<Json> SurveyMounted(const control::DaemonAddress& address, LongCommand& command) {
  auto session = control::OpenSession(address, kSurveySession);
  // A daemon that does not know the session says so in this way.
  if (session.status().Is(StatusCode::kInvalidArgument) ||
      (session.ok() && session->greeting.value("version", uint64_t{0}) != kSurveyVersion)) {
    return Status(StatusCode::kNeedsNewer,
                  "the daemon of the mount is of another version; mount the store again")
        .At(address.store);
  }
  SILTFS_RETURN_IF_ERROR(session.status());
  Observer observer(command);
  return ReceiveSurvey(*session->stream, observer.function());
}

// Opens the store for reading, surveys it, and closes it.
Result<Json> SurveyUnmounted(Env& env, const std::string& store, LongCommand& command) {
  FileSystemOptions options;
  options.store = store;
  options.read_only = true;
  options.keep_guide = true;
  SILTFS_ASSIGN_OR_RETURN(
      const auto bucket,
      OpenBucketOf(env, options, {.interrupted = [&command] { return command.interrupted(); }}));
  auto opened = OpenWithProgress(env, std::move(options), command);
  if (bucket != nullptr && !opened.ok())
    SILTFS_RETURN_IF_ERROR(bucket->EndOpening(opened.status()));
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, std::move(opened));
  Observer observer(command);
  auto document =
      SurveyToJson(file_system->maintenance(), store, std::nullopt, observer.function());
  const Status closed = file_system->Close();
  Status outcome = document.status();
  if (bucket != nullptr) outcome = bucket->EndOpening(std::move(outcome));
  if (!outcome.ok()) {
    closed.IgnoreError("the first failure is reported");
    return outcome;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  (*document)["stats"]["read_only"] = false;  // only this function has opened the store read-only
  return document;
}

Result<Json> Survey(const control::DaemonAddress& address, LongCommand& command, Env& env) {
  auto mounted = SurveyMounted(address, command);
  const bool is_mounted =
      !mounted.status().Is(StatusCode::kNotFound) && !mounted.status().Is(StatusCode::kStale);
  if (is_mounted) return mounted;
  mounted.status().IgnoreError("the store is not mounted");
  PrepareForStore();
  auto document =
      OpenWhenFree(address.store, [&] { return SurveyUnmounted(env, address.store, command); });
  if (document.ok()) return document;
  return ExplainLock(std::move(document).status(), address.store, "siltfs report");
}

// Escapes all texts of the document: names may have any bytes.
void MakePrintable(Json& document) {
  if (document.is_string()) document = Printable(document.get<std::string>());
  if (document.is_structured()) {
    for (Json& part : document) MakePrintable(part);
  }
}

ExitCode RunReport(const ReportArguments& arguments, Surroundings& surroundings) {
  const Status writable = CheckPublishable(arguments.output);
  if (!writable.ok()) return Fail(surroundings, ExitCode::kFailed, writable.ToString());
  const auto address = AddressAt(arguments.place);
  if (!address.ok()) return Fail(surroundings, address.status());
  const Status outside = CheckOutsideStore(surroundings.env, arguments.output, address->store);
  if (!outside.ok()) return Fail(surroundings, outside);
  const auto command = LongCommand::Begin(
      surroundings, {.command = "report", .subject = address->store, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  auto document = Survey(*address, **command, surroundings.env);
  (*command)->End();
  if (!document.ok())
    return Fail(surroundings, ExplainInterruption(document.status(), "no file was changed"));
  MakePrintable(*document);
  const std::string page = report::MakeStoreReport(
      *document, {.version = kVersion,
                  .health = std::string(HealthWord(document->at("stats"))),
                  .made_at = static_cast<double>(surroundings.env.NowNanoseconds()) / 1e9});
  const Status written = PublishFile(arguments.output, page);
  return written.ok() ? ExitCode::kDone : Fail(surroundings, ExitCode::kFailed, written.ToString());
}

}  // namespace

std::function<ExitCode()> ConfigureReport(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ReportArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_option("-o,--output", arguments->output,
                 "Replace this file at once as a whole with the page (HTML)")
      ->type_name("FILE")
      ->required();
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunReport(*arguments, surroundings); };
}

}  // namespace siltfs

// siltfs metrics
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>

#include "store/env/programs.h"
#include "store/env/published_file.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/metrics_text.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/output_file.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct MetricsArguments {
  std::string place;
  std::optional<std::string> output;
  std::optional<std::string> listen;
};

// The place of the exporter, from the folder of this program.
constexpr const char* kExporter = "../libexec/siltfs/siltfs-exporter";

Status Write(const MetricsArguments& arguments, const std::string& text,
             Surroundings& surroundings) {
  if (arguments.output) return PublishFile(*arguments.output, text);
  surroundings.out << text << std::flush;
  return Status::Ok();
}

// If the statistics cannot be read, the metrics say that, and the command fails. So neither a
// monitoring system nor the log of a timer shows old values as new.
ExitCode Print(const MetricsArguments& arguments, Surroundings& surroundings) {
  const auto address = AddressAt(arguments.place);
  const std::string store = address.ok() ? address->store : arguments.place;
  if (arguments.output) {
    const Status outside = CheckOutsideStore(surroundings.env, *arguments.output, store);
    if (!outside.ok()) return Fail(surroundings, outside);
  }
  const Result<nlohmann::json> statistics =
      address.ok() ? ReadMonitoredStatistics(surroundings.env, *address)
                   : Result<nlohmann::json>(address.status());
  const Status written = Write(
      arguments,
      FormatMetrics(store, statistics.ok() ? *statistics : nlohmann::json(),
                    arguments.output ? MetricsFormat::kPrometheus : MetricsFormat::kOpenMetrics),
      surroundings);
  if (!statistics.ok()) {
    written.IgnoreError("the first failure is reported");
    return Fail(surroundings, statistics.status());
  }
  return written.ok() ? ExitCode::kDone : Fail(surroundings, ExitCode::kFailed, written.ToString());
}

// Replaces this process by the exporter, which has the rest of the work.
Status BecomeExporter(const std::string& address) {
  SILTFS_ASSIGN_OR_RETURN(const std::string own, PathOfOwnProgram());
  return BecomeProgram(own.substr(0, own.rfind('/') + 1) + kExporter, {address});
}

ExitCode RunMetrics(const MetricsArguments& arguments, Surroundings& surroundings) {
  if (arguments.listen)
    return Fail(surroundings, ExitCode::kFailed, BecomeExporter(*arguments.listen).ToString());
  if (!arguments.place.empty()) return Print(arguments, surroundings);
  return Fail(surroundings, ExitCode::kUsage,
              "name the store, or use --listen ADDRESS to serve all mounted stores");
}

}  // namespace

std::function<ExitCode()> ConfigureMetrics(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<MetricsArguments>();
  CLI::Option* place = app.add_option("STORE|MOUNTPOINT", arguments->place,
                                      "The store's directory, or where it is mounted");
  CLI::Option* output =
      app.add_option("--output", arguments->output,
                     "Replace this file at once as a whole, instead of printing the metrics")
          ->type_name("FILE");
  app.add_option("--listen", arguments->listen,
                 "Serve the metrics of all mounted stores over HTTP, on ADDRESS:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->excludes(place)
      ->excludes(output);
  return [arguments, &surroundings] { return RunMetrics(*arguments, surroundings); };
}

}  // namespace siltfs

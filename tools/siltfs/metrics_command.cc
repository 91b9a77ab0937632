// siltfs metrics
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>

#include "store/env/published_file.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/metrics_text.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string place;
  std::optional<std::string> output;
};

Status Write(const Arguments& arguments, const std::string& text, Surroundings& surroundings) {
  if (arguments.output) return PublishFile(*arguments.output, text);
  surroundings.out << text << std::flush;
  return Status::Ok();
}

// If the statistics cannot be read, the metrics say that, and the command fails. So neither a
// monitoring system nor the log of a timer shows old values as new.
ExitCode Run(const Arguments& arguments, Surroundings& surroundings) {
  const auto address = AddressAt(arguments.place);
  const Result<nlohmann::json> statistics =
      address.ok() ? ReadMonitoredStatistics(surroundings.env, *address)
                   : Result<nlohmann::json>(address.status());
  const std::string store = address.ok() ? address->store : arguments.place;
  const Status written =
      Write(arguments, FormatMetrics(store, statistics.ok() ? *statistics : nlohmann::json()),
            surroundings);
  if (!statistics.ok()) {
    written.IgnoreError("the first failure is reported");
    return Fail(surroundings, statistics.status());
  }
  return written.ok() ? ExitCode::kDone : Fail(surroundings, ExitCode::kFailed, written.ToString());
}

}  // namespace

std::function<ExitCode()> ConfigureMetrics(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_option("--output", arguments->output,
                 "Replace this file at once as a whole, instead of printing the metrics")
      ->type_name("FILE");
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs

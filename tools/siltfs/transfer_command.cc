#include "tools/siltfs/transfer_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "store/base/size_text.h"
#include "store/env/process.h"
#include "tools/siltfs/interruption.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

Status CheckStreams(PipedStreams* pipes, TransferUse use) {
  if (pipes == nullptr) return {StatusCode::kUnsupported, "there is no standard input and output"};
  if (use.output && pipes->OutputIsTerminal()) {
    return {StatusCode::kInvalidArgument,
            "the stream is binary and is not written to a terminal; redirect standard output to a "
            "file or a pipe"};
  }
  if (use.input && pipes->InputIsTerminal()) {
    return {StatusCode::kInvalidArgument,
            "the stream is binary and is not read from a terminal; redirect standard input from a "
            "file or a pipe"};
  }
  return Status::Ok();
}

}  // namespace

Result<Json> RunTransfer(
    Surroundings& surroundings, const std::string& place, SnapshotAccess access, TransferUse use,
    const std::string& command,
    const std::function<Result<Json>(SnapshotPlace&, PipedStreams&,
                                     const std::function<Status()>&)>& transfer) {
  SILTFS_RETURN_IF_ERROR(CheckStreams(surroundings.pipes, use));
  // Before any thread starts.
  SILTFS_ASSIGN_OR_RETURN(const auto signals, TerminationSignals::Block());
  const Interruption interruption(*signals);
  const auto check = [&interruption]() -> Status {
    if (!interruption.requested()) return Status::Ok();
    return {StatusCode::kInterrupted, "was interrupted"};
  };
  return WithSnapshots(
      surroundings.env, place, access,
      [&](SnapshotPlace& store) { return transfer(store, *surroundings.pipes, check); }, command);
}

Surroundings WithResultsOnErr(const Surroundings& surroundings) {
  return {.env = surroundings.env,
          .out = surroundings.err,
          .err = surroundings.err,
          .err_is_terminal = surroundings.err_is_terminal,
          .pipes = surroundings.pipes,
          .json = surroundings.json};
}

std::string TransferTotals(const Json& outcome) {
  return fmt::format("{} records and {} chunks with {}, in a stream of {}",
                     outcome.value("records", uint64_t{0}), outcome.value("chunks", uint64_t{0}),
                     FormatSize(outcome.value("plain_bytes", uint64_t{0})),
                     FormatSize(outcome.value("stream_bytes", uint64_t{0})));
}

}  // namespace siltfs

#include "tools/siltfs/transfer_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "store/base/size_text.h"
#include "tools/siltfs/counted_streams.h"
#include "tools/siltfs/long_command.h"

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
    Surroundings& surroundings, const SnapshotUse& wanted, TransferUse use,
    const std::function<Result<Json>(SnapshotPlace&, PipedStreams&,
                                     const std::function<Status()>&)>& transfer) {
  SILTFS_RETURN_IF_ERROR(CheckStreams(surroundings.pipes, use));
  CountedStreams counted(*surroundings.pipes);
  return WithSnapshots(surroundings, wanted, [&](SnapshotPlace& store, LongCommand& command) {
    command.Observe([&counted] { return WorkProgress{"MiB", counted.bytes() >> 20, 0}; });
    return transfer(store, counted, [&command] { return command.Check(); });
  });
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

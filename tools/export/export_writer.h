// A thread of an export that reads chunks over a lane and writes them into files.
//
// Not thread-safe: a writer belongs to one thread. Ownership: borrows job and lane. Errors: errors
// of files go to the job; an error that ends the export is returned.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "chunker/chunk_namer.h"
#include "fs/transfer/lane_message.h"
#include "store/base/result.h"
#include "tools/export/export_job.h"
#include "tools/import/transfer_connection.h"

namespace siltfs {

class ExportWriter {
 public:
  ExportWriter(ExportJob& job, LaneClient& lane) : job_(job), lane_(lane) {}

  // Writes parts until there are no more.
  Status Run();
  // Counts down what is pending in the file, and finishes it at 0.
  Status Done(const ExportFilePtr& file);

 private:
  Status WriteChunks(std::span<ExportPart> parts);
  Status WriteFile(const ExportPart& part);
  // Writes the bytes to all of the parts, which have the same chunk.
  Status Write(std::span<ExportPart> same, ByteView bytes);
  // `verified` gets an error of the file; one that ends the export is returned.
  Status Verify(const ExportFile& file, Status& verified);

  ExportJob& job_;
  LaneClient& lane_;
  std::optional<ChunkNamer> namer_;  // made when it is first used
};

}  // namespace siltfs

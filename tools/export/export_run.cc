#include "tools/export/export_run.h"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "fs/transfer/content_record.h"

namespace siltfs {

using transfer::Answer;
using transfer::DecodedRecord;
using transfer::Request;
using transfer::RequestType;

namespace {

constexpr size_t kCallSlot = 2;
// So many files are located with one request.
constexpr size_t kLocateFiles = 256;

SourceAttributes AttributesOf(const DecodedRecord& record) {
  const EntryImage& image = record.image;
  return {.file_system = 0,
          .inode = record.number,
          .mode = image.mode,
          .links = static_cast<uint32_t>(image.parent),
          .uid = image.uid,
          .gid = image.gid,
          .device = image.device,
          .size = image.size,
          .allocated_bytes = 0,
          .atime = image.atime,
          .mtime = image.mtime,
          .ctime = 0};
}

std::vector<SourceXattr> XattrsOf(const DecodedRecord& record) {
  std::vector<SourceXattr> xattrs;
  for (const XattrImage& xattr : record.xattrs)
    xattrs.push_back({std::string(xattr.name), std::string(xattr.value)});
  return xattrs;
}

// The order of the log; parts that are no chunks come last.
auto PlaceOf(const ExportPart& part) {
  const ChunkPlace& chunk = part.piece.chunk;
  return std::tuple(part.piece.kind != ContentPiece::Kind::kChunk, chunk.location.segment,
                    chunk.location.ordinal, chunk.name);
}

}  // namespace

void ExportRun::Interrupt() {
  const MutexLock lock(mutex_);
  job_.Stop({StatusCode::kInterrupted, "was interrupted"});
  if (interruptible_ != nullptr) interruptible_->Abort();
}

Result<Answer> ExportRun::Call(Request request, std::string_view payload) {
  std::copy(payload.begin(), payload.end(), lane_->slot(kCallSlot).begin());
  request.slot = kCallSlot;
  request.bytes = static_cast<uint32_t>(payload.size());
  SILTFS_RETURN_IF_ERROR(lane_->Post(request));
  return lane_->Await();
}

Result<std::shared_ptr<const TargetDirectory>> ExportRun::Open(const Directory& directory) const {
  if (!directory.parent) return root_;
  SILTFS_ASSIGN_OR_RETURN(const auto parent, Open(*directory.parent));
  return parent->OpenDirectory(directory.name);
}

Status ExportRun::Run() {
  // What is written into the exported tree would be exported again, without end.
  SILTFS_ASSIGN_OR_RETURN(const uint64_t around,
                          TargetDirectory::FileSystemAround(arguments_.target));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t exported,
                          TargetDirectory::FileSystemAround(arguments_.address.mountpoint));
  if (around == exported) {
    return Status(StatusCode::kIoError, "is in the mounted store, and must be outside of it")
        .At(arguments_.target);
  }
  auto root = TargetDirectory::OpenOrMake(arguments_.target);
  if (root.status().Is(StatusCode::kNotFound)) {  // the code is for a missing store
    return Status(StatusCode::kIoError, std::string(root.status().cause())).At(arguments_.target);
  }
  SILTFS_RETURN_IF_ERROR(root.status());
  root_ = *std::move(root);
  SILTFS_ASSIGN_OR_RETURN(connection_, TransferConnection::Open(arguments_.address, "export"));
  {
    const MutexLock lock(mutex_);
    if (job_.stopped()) return job_.outcome();
    interruptible_ = connection_.get();
  }
  const std::shared_ptr<void> end(nullptr, [this](void*) {
    const MutexLock lock(mutex_);
    interruptible_ = nullptr;
  });
  SILTFS_ASSIGN_OR_RETURN(lane_, connection_->NewLane());
  finisher_ = std::make_unique<ExportWriter>(job_, *lane_);
  const size_t count =
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, transfer::kMaxLanes - 1);
  std::vector<std::unique_ptr<ExportWriter>> writers;
  for (size_t i = 0; i < count; ++i) {
    SILTFS_ASSIGN_OR_RETURN(LaneClient* const lane, connection_->NewLane());
    writers.push_back(std::make_unique<ExportWriter>(job_, *lane));
  }
  std::vector<std::thread> threads;
  for (const auto& writer : writers) {
    threads.emplace_back([this, raw = writer.get()] {
      Status outcome = raw->Run();
      if (!outcome.ok()) job_.Stop(std::move(outcome));
    });
  }
  Status collected = Collect();
  if (!collected.ok()) job_.Stop(std::move(collected));
  job_.EndBatches();
  for (std::thread& thread : threads) thread.join();
  if (!job_.stopped()) {
    MakeLinks();
    FinishDirectories();
  }
  Status outcome = job_.outcome();
  if (outcome.Is(StatusCode::kInterrupted)) return outcome;
  if (!outcome.ok()) return connection_->ReasonFor(std::move(outcome));
  return connection_->Finish().status();
}

Status ExportRun::Collect() {
  const auto top = std::make_shared<Directory>();
  top->path = arguments_.target;
  top->inode = arguments_.source;
  SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                          Call({.type = RequestType::kReadSelf, .number = top->inode}, {}));
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
  SILTFS_ASSIGN_OR_RETURN(const auto records,
                          transfer::DecodeRecords(lane_->slot(kCallSlot).first(answer.bytes), 1));
  top->attributes = AttributesOf(records[0]);
  top->xattrs = XattrsOf(records[0]);
  waiting_.push_back(top);
  while (!waiting_.empty() && !job_.stopped()) {
    const DirectoryPtr next = waiting_.back();
    waiting_.pop_back();
    directories_.push_back(next);
    SILTFS_RETURN_IF_ERROR(ExportDirectory(next));
  }
  SILTFS_RETURN_IF_ERROR(LocateAll());
  return PostBatch();
}

Status ExportRun::ExportDirectory(const DirectoryPtr& directory) {
  const auto target = Open(*directory);
  if (!target.ok()) {
    job_.AddError(directory->path, target.status());
    return Status::Ok();
  }
  (*target)->RemoveAbandoned();
  for (uint64_t cookie = 0; !job_.stopped();) {
    SILTFS_ASSIGN_OR_RETURN(
        const Answer answer,
        Call({.type = RequestType::kReadEntries, .number = directory->inode, .second = cookie},
             {}));
    const Status listed = transfer::StatusOfAnswer(answer);
    if (listed.Is(StatusCode::kAborted)) return listed;
    if (!listed.ok()) {
      job_.AddError(directory->path, listed);
      return Status::Ok();
    }
    if ((answer.flags & transfer::kIncomplete) != 0) {
      job_.AddError(directory->path, {StatusCode::kUnsupported,
                                      "an entry is left out: it cannot be read, or its extended "
                                      "attributes are too large"});
    }
    // The slot is used again for the entries, so the records are copied.
    const auto bytes = lane_->slot(kCallSlot).first(answer.bytes);
    const Bytes copy(bytes.begin(), bytes.end());
    SILTFS_ASSIGN_OR_RETURN(const auto records, transfer::DecodeRecords(copy, answer.count));
    for (const DecodedRecord& record : records) {
      if (job_.stopped()) break;
      SILTFS_RETURN_IF_ERROR(ExportEntry(directory, *target, record));
    }
    cookie = answer.second;
    if (cookie == 0) break;
  }
  return Status::Ok();
}

Status ExportRun::ExportEntry(const DirectoryPtr& directory,
                              const std::shared_ptr<const TargetDirectory>& target,
                              const DecodedRecord& record) {
  const std::string name(record.image.name);
  if (!IsName(name)) return {StatusCode::kCorruption, "the daemon's answer is not understood"};
  const SourceAttributes attributes = AttributesOf(record);
  const std::string path = directory->path + "/" + name;
  if (attributes.IsDirectory()) {
    const auto below = std::make_shared<Directory>();
    below->parent = directory;
    below->name = name;
    below->path = path;
    below->inode = record.number;
    below->attributes = attributes;
    below->xattrs = XattrsOf(record);
    waiting_.push_back(below);
    return Status::Ok();
  }
  if (attributes.links > 1 && !linked_.try_emplace(record.number, directory, name).second) {
    links_.push_back({directory, name, record.number});
    return Status::Ok();
  }
  if (attributes.IsRegular()) return BeginFile(directory, target, name, record);
  const Status placed =
      target->PlaceSpecial(name, attributes, std::string(record.image.target), XattrsOf(record));
  if (placed.ok()) {
    ++job_.totals().files;
  } else {
    job_.AddError(path, placed, record.number);
  }
  return Status::Ok();
}

Status ExportRun::BeginFile(const DirectoryPtr& directory,
                            const std::shared_ptr<const TargetDirectory>& target,
                            const std::string& name, const DecodedRecord& record) {
  const auto file = std::make_shared<ExportFile>();
  file->inode = record.number;
  file->path = directory->path + "/" + name;
  file->attributes = AttributesOf(record);
  file->xattrs = XattrsOf(record);
  const auto present = target->Find(name);
  if (present.ok() && *present && (*present)->IsRegular() &&
      (*present)->size == file->attributes.size && (*present)->mtime == file->attributes.mtime) {
    ++job_.totals().files;
    ++job_.totals().files_unchanged;
    return Status::Ok();
  }
  auto made = target->NewFile(name);
  if (!made.ok()) {
    job_.AddError(file->path, made.status(), file->inode);
    return Status::Ok();
  }
  file->target = *std::move(made);
  to_locate_.push_back(file);
  if (to_locate_.size() < std::min(kLocateFiles, MostFiles())) return Status::Ok();
  return LocateAll();
}

size_t ExportRun::MostFiles() const {
  return std::clamp<size_t>(arguments_.open_files / 14, 5, kBatchFiles);
}

Status ExportRun::LocateAll() {
  uint64_t offset = 0;
  for (size_t next = 0; next < to_locate_.size() && !job_.stopped();) {
    Encoder asked;
    for (size_t i = next; i < to_locate_.size(); ++i) asked.U64(to_locate_[i]->inode);
    SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                            Call({.type = RequestType::kLocate,
                                  .count = static_cast<uint32_t>(to_locate_.size() - next),
                                  .second = offset},
                                 asked.text()));
    SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
    SILTFS_ASSIGN_OR_RETURN(
        const auto pieces,
        transfer::DecodePieces(lane_->slot(kCallSlot).first(answer.bytes), answer.count));
    for (const transfer::FilePiece& located : pieces) {
      if (located.file >= to_locate_.size() - next)
        return {StatusCode::kCorruption, "the daemon's answer is not understood"};
      const ExportFilePtr& file = to_locate_[next + located.file];
      if (located.code != StatusCode::kOk) {
        job_.Fail(*file,
                  {located.code, "cannot be read: " + std::string(StatusCodeName(located.code))});
        continue;
      }
      if (located.piece.kind == ContentPiece::Kind::kHole) continue;
      ++file->pending;
      batch_.push_back({file, located.piece});
      batch_bytes_ += located.piece.length;
      if (job_.verify() && located.piece.kind == ContentPiece::Kind::kChunk)
        file->chunks.emplace_back(located.piece.offset, located.piece.chunk);
      const bool full = batch_bytes_ >= kBatchBytes || batch_.size() >= kBatchChunks;
      if (full) SILTFS_RETURN_IF_ERROR(PostBatch());
    }
    if (answer.number == 0 && answer.count == 0)
      return {StatusCode::kCorruption, "the daemon's answer is not understood"};
    for (uint64_t i = 0; i < answer.number && next < to_locate_.size(); ++i) {
      complete_.push_back(std::move(to_locate_[next++]));
      ++batch_files_;
    }
    offset = answer.second;
  }
  to_locate_.clear();
  if (batch_files_ >= MostFiles()) return PostBatch();
  return Status::Ok();
}

Status ExportRun::PostBatch() {
  std::sort(batch_.begin(), batch_.end(),
            [](const ExportPart& a, const ExportPart& b) { return PlaceOf(a) < PlaceOf(b); });
  job_.Post(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  batch_files_ = 0;
  for (const ExportFilePtr& file : std::exchange(complete_, {}))
    SILTFS_RETURN_IF_ERROR(finisher_->Done(file));
  return Status::Ok();
}

void ExportRun::MakeLinks() {
  for (const Link& link : links_) {
    if (job_.stopped()) return;
    const auto& linked = linked_.at(link.inode);  // clang cannot capture a structured binding
    const auto& first = linked.first;
    const std::string& name = linked.second;
    const auto make = [&]() -> Status {
      // The first name may still belong to an old file.
      if (job_.HasFailed(link.inode))
        return {StatusCode::kIoError,
                "cannot be linked, because " + first->path + "/" + name + " was not exported"};
      SILTFS_ASSIGN_OR_RETURN(const auto existing, Open(*first));
      SILTFS_ASSIGN_OR_RETURN(const auto directory, Open(*link.directory));
      return directory->PlaceLink(link.name, *existing, name);
    };
    const Status made = make();
    if (made.ok()) {
      ++job_.totals().files;
    } else {
      job_.AddError(link.directory->path + "/" + link.name, made);
    }
  }
}

void ExportRun::FinishDirectories() {
  for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
    const auto finish = [&]() -> Status {
      SILTFS_ASSIGN_OR_RETURN(const auto target, Open(**directory));
      return target->SetAttributes((*directory)->attributes, (*directory)->xattrs);
    };
    const Status finished = finish();
    if (!finished.ok()) job_.AddError((*directory)->path, finished);
  }
}

}  // namespace siltfs

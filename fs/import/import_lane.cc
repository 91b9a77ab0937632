#include "fs/import/import_lane.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fs/import/tree_remover.h"
#include "store/base/coding.h"

namespace siltfs {

using transfer::Answer;
using transfer::DecodedRecord;
using transfer::RecordKind;
using transfer::Request;
using transfer::RequestType;

namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kDirectoryType = 0040000;
// Of a directory that is being filled. It gets its own mode at the end.
constexpr uint32_t kFillingMode = 0700;

bool IsDirectory(const Attributes& attributes) {
  return (attributes.mode & kTypeMask) == kDirectoryType;
}

// Errors after which no later entry can succeed, so that the whole request fails.
bool EndsImport(const Status& status) {
  return status.Is(StatusCode::kNoSpace) || status.Is(StatusCode::kReadOnly) ||
         status.Is(StatusCode::kIoError) || status.Is(StatusCode::kAborted);
}

// The first failure that ends the import. The request then fails as a whole, and the other outcomes
// are not reported.
Status EndOf(const std::vector<Result<PutOutcome>>& outcomes) {
  Status end;
  for (const auto& outcome : outcomes) {
    const bool ends = EndsImport(outcome.status());
    if (ends && end.ok()) end = outcome.status();
  }
  return end;
}

}  // namespace

Answer ImportLane::Handle(const Request& request, MutableByteView slot) {
  Result<Answer> answer = context_.stopped()
                              ? Status(StatusCode::kAborted, "the store is being closed")
                              : Dispatch(request, slot);
  announcer_.Flush();
  return answer.ok() ? *std::move(answer) : transfer::FailureAnswer(answer.status());
}

Result<Answer> ImportLane::Dispatch(const Request& request, MutableByteView slot) {
  const ByteView bytes = slot.first(request.bytes);
  switch (request.type) {
    case RequestType::kAttach:
      return Attach(request.number);
    case RequestType::kOpenDirectory:
      return OpenDirectory(request, bytes);
    case RequestType::kPut:
      return Put(request, slot);
    case RequestType::kOffer:
      return Offer(request, slot);
    case RequestType::kBeginFile:
      SILTFS_RETURN_IF_ERROR(BeginFile(request.number));
      return Answer();
    case RequestType::kWriteFile:
      SILTFS_RETURN_IF_ERROR(WriteFile(request.number, bytes));
      return Answer();
    case RequestType::kFinishFile:
      return FinishFile(request, slot);
    case RequestType::kList:
      return List(request, slot);
    case RequestType::kRemove:
      return Remove(request, bytes);
    default:
      break;
  }
  return Status(StatusCode::kInvalidArgument, "the request is not understood");
}

Result<std::vector<DecodedRecord>> ImportLane::ReadRecords(const Request& request, ByteView slot,
                                                           size_t count) {
  // From here on only the copy is used, because the client may change the slot.
  copy_.assign(slot.begin(), slot.begin() + request.bytes);
  return transfer::DecodeRecords(copy_, count);
}

Status ImportLane::CheckOpened(InodeNumber directory) const {
  if (context_.rights.superuser() || context_.opened.Contains(directory)) return Status::Ok();
  return {StatusCode::kNotPermitted, "the directory is not part of this import"};
}

Status ImportLane::NoteOpened(InodeNumber directory) {
  if (context_.rights.superuser()) return Status::Ok();
  return context_.opened.Add(directory);
}

Result<Answer> ImportLane::Attach(InodeNumber directory) {
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes,
                          context_.file_system.GetAttributes(directory));
  if (!IsDirectory(attributes)) return Status(StatusCode::kNotADirectory, "is not a directory");
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckReach(directory));
  SILTFS_RETURN_IF_ERROR(NoteOpened(directory));
  return Answer{.number = directory};
}

Result<InodeNumber> ImportLane::OpenInReference(InodeNumber reference, std::string_view name) {
  if (reference == 0) return InodeNumber{0};
  SILTFS_RETURN_IF_ERROR(CheckOpened(reference));
  if (!context_.rights.CheckSearch(reference).ok()) return InodeNumber{0};
  const auto found = context_.file_system.Lookup(reference, name);
  if (!found.ok()) {
    found.status().IgnoreError("then the files are read");
    return InodeNumber{0};
  }
  context_.file_system.Forget(found->inode, 1);
  if (!IsDirectory(*found)) return InodeNumber{0};
  SILTFS_RETURN_IF_ERROR(NoteOpened(found->inode));
  return found->inode;
}

Result<Answer> ImportLane::OpenDirectory(const Request& request, ByteView bytes) {
  SILTFS_ASSIGN_OR_RETURN(const auto records, ReadRecords(request, bytes, 1));
  const EntryImage& image = records[0].image;
  SILTFS_RETURN_IF_ERROR(CheckOpened(image.parent));
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckSearch(image.parent));
  if (!IsName(image.name)) return Status(StatusCode::kInvalidArgument, "is not a valid name");
  Answer answer;
  SILTFS_ASSIGN_OR_RETURN(answer.second, OpenInReference(request.number, image.name));
  FileSystem& file_system = context_.file_system;
  auto found = file_system.Lookup(image.parent, image.name);
  if (found.ok()) file_system.Forget(found->inode, 1);
  const bool missing = found.status().Is(StatusCode::kNotFound);
  if (!found.ok() && !missing) return found.status();
  const bool create = (request.flags & transfer::kCreate) != 0;
  if (found.ok() && IsDirectory(*found)) {
    answer.flags = transfer::kExisted;
    answer.number = found->inode;
  } else if (create) {
    SILTFS_RETURN_IF_ERROR(context_.rights.CheckChange(image.parent, image.name));
    if (!missing) SILTFS_RETURN_IF_ERROR(file_system.Unlink(image.parent, image.name));
    auto made =
        file_system.MakeDirectory(image.parent, image.name, kFillingMode, context_.rights.caller());
    SILTFS_RETURN_IF_ERROR(made.status());
    file_system.Forget(made->inode, 1);
    announcer_.NameChanged(image.parent, image.name, missing ? 0 : found->inode);
    answer.number = made->inode;
  }
  if (answer.number != 0) SILTFS_RETURN_IF_ERROR(NoteOpened(answer.number));
  return answer;
}

Status ImportLane::PrepareOffer(DecodedRecord& record) const {
  SILTFS_RETURN_IF_ERROR(CheckOpened(record.image.parent));
  if (context_.rights.superuser()) return Status::Ok();
  if (!IsName(record.image.name))
    return Status(StatusCode::kInvalidArgument, "is not a valid name");
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckSearch(record.image.parent));
  return context_.rights.Adapt(record.image, record.xattrs);
}

Status ImportLane::Prepare(DecodedRecord& record) const {
  SILTFS_RETURN_IF_ERROR(CheckOpened(record.image.parent));
  if (context_.rights.superuser()) return Status::Ok();
  if (!IsName(record.image.name))
    return Status(StatusCode::kInvalidArgument, "is not a valid name");
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckChange(record.image.parent, record.image.name));
  return context_.rights.Adapt(record.image, record.xattrs);
}

std::vector<Result<PutOutcome>> ImportLane::PutEntries(std::vector<DecodedRecord>& records,
                                                       size_t begin, size_t end,
                                                       bool replace_directories) {
  std::vector<EntryImage> images;
  std::vector<Status> refused;
  images.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) {
    refused.push_back(Prepare(records[i]));
    if (refused.back().ok()) images.push_back(records[i].Image());
  }
  std::vector<Result<PutOutcome>> put = context_.file_system.entries().Put(images);
  std::vector<Result<PutOutcome>> outcomes;
  outcomes.reserve(end - begin);
  for (size_t i = begin, next = 0; i < end; ++i) {
    if (!refused[i - begin].ok()) {
      outcomes.emplace_back(refused[i - begin]);
      continue;
    }
    Result<PutOutcome>& outcome = put[next];
    if (outcome.status().Is(StatusCode::kIsADirectory) && replace_directories) {
      const EntryImage& image = images[next];
      TreeRemover remover(context_.file_system, context_.rights, announcer_, context_.stopped);
      const auto removed = remover.Remove(image.parent, image.name);
      outcome = removed.ok() ? context_.file_system.entries().Put({&image, 1})[0]
                             : Result<PutOutcome>(removed.status());
    }
    outcomes.push_back(std::move(outcome));
    ++next;
  }
  return outcomes;
}

Result<PutOutcome> ImportLane::PutLink(const DecodedRecord& record, bool replace_directories) {
  const EntryImage& image = record.image;
  SILTFS_RETURN_IF_ERROR(CheckOpened(image.parent));
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckOwner(record.number));
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckChange(image.parent, image.name));
  EntryStore& entries = context_.file_system.entries();
  auto linked = entries.Link(record.number, image.parent, image.name);
  if (linked.status().Is(StatusCode::kIsADirectory) && replace_directories) {
    TreeRemover remover(context_.file_system, context_.rights, announcer_, context_.stopped);
    SILTFS_RETURN_IF_ERROR(remover.Remove(image.parent, image.name).status());
    linked = entries.Link(record.number, image.parent, image.name);
  }
  if (linked.ok() && linked->effect != PutEffect::kUnchanged)
    announcer_.AttributesChanged(record.number);
  return linked;
}

Result<PutOutcome> ImportLane::FinishDirectory(DecodedRecord& record) {
  SILTFS_RETURN_IF_ERROR(CheckOpened(record.number));
  context_.opened.Remove(record.number);
  Status may = context_.rights.CheckOwner(record.number);
  if (may.ok()) may = context_.rights.Adapt(record.image, record.xattrs);
  SILTFS_RETURN_IF_ERROR(may);
  SILTFS_ASSIGN_OR_RETURN(const bool changed, context_.file_system.entries().SetDirectory(
                                                  record.number, record.Image()));
  if (changed) announcer_.AttributesChanged(record.number);
  return PutOutcome{.effect = changed ? PutEffect::kMade : PutEffect::kUnchanged,
                    .inode = record.number};
}

Result<Answer> ImportLane::Put(const Request& request, MutableByteView slot) {
  SILTFS_ASSIGN_OR_RETURN(auto records, ReadRecords(request, slot, request.count));
  std::vector<Result<PutOutcome>> outcomes;
  outcomes.reserve(records.size());
  const bool replace_directories = (request.flags & transfer::kReplaceDirectories) != 0;
  for (size_t i = 0; i < records.size();) {
    if (context_.stopped()) {
      outcomes.emplace_back(Status(StatusCode::kAborted, "the store is being closed"));
      break;
    }
    size_t end = i;
    while (end < records.size() && records[end].kind == RecordKind::kEntry) ++end;
    if (end > i) {
      auto put = PutEntries(records, i, end, replace_directories);
      std::move(put.begin(), put.end(), std::back_inserter(outcomes));
      i = end;
    } else if (records[i].kind == RecordKind::kLink) {
      outcomes.push_back(PutLink(records[i++], replace_directories));
    } else {
      outcomes.push_back(FinishDirectory(records[i++]));
    }
  }
  SILTFS_RETURN_IF_ERROR(EndOf(outcomes));
  return Conclude(records, outcomes, slot);
}

Result<PutOutcome> ImportLane::OfferOne(DecodedRecord& record, InodeNumber reference,
                                        bool probably_new) {
  SILTFS_RETURN_IF_ERROR(PrepareOffer(record));
  record.extents.clear();
  record.xattrs.clear();
  const CallerRights& rights = context_.rights;
  EntryStore& entries = context_.file_system.entries();
  if (!rights.superuser()) {
    // An unchanged file is left alone also where the user may not write.
    auto outcome = entries.Offer(record.Image(), /*reference=*/0, probably_new);
    const bool needed = outcome.ok() && outcome->effect == PutEffect::kNeeded;
    const bool may_share = needed && reference != 0 &&
                           rights.CheckChange(record.image.parent, record.image.name).ok() &&
                           rights.CheckRead(reference, record.image.name).ok();
    if (!may_share) return outcome;
  }
  return entries.Offer(record.Image(), reference, probably_new);
}

Result<Answer> ImportLane::Offer(const Request& request, MutableByteView slot) {
  SILTFS_ASSIGN_OR_RETURN(auto records, ReadRecords(request, slot, request.count));
  if (request.number != 0) SILTFS_RETURN_IF_ERROR(CheckOpened(request.number));
  std::vector<Result<PutOutcome>> outcomes;
  outcomes.reserve(records.size());
  for (DecodedRecord& record : records) {
    auto outcome = OfferOne(record, request.number, (request.flags & transfer::kNew) != 0);
    if (outcome.status().Is(StatusCode::kIsADirectory) ||
        outcome.status().Is(StatusCode::kCorruption)) {
      // The source can be read, so Put decides.
      outcome = PutOutcome{.effect = PutEffect::kNeeded};
    }
    outcomes.push_back(std::move(outcome));
    if (EndsImport(outcomes.back().status())) break;
  }
  SILTFS_RETURN_IF_ERROR(EndOf(outcomes));
  return Conclude(records, outcomes, slot);
}

Answer ImportLane::Conclude(const std::vector<DecodedRecord>& records,
                            const std::vector<Result<PutOutcome>>& outcomes, MutableByteView slot) {
  Encoder out;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    transfer::Outcome told;
    if (outcomes[i].ok()) {
      told.effect = outcomes[i]->effect;
      told.inode = outcomes[i]->inode;
      const bool name_changed =
          told.effect == PutEffect::kMade || told.effect == PutEffect::kReplaced;
      if (name_changed && records[i].kind != RecordKind::kFinishDirectory)
        announcer_.NameChanged(records[i].image.parent, records[i].image.name,
                               outcomes[i]->replaced);
    } else {
      told.code = outcomes[i].status().code();
      told.cause = outcomes[i].status().cause();
    }
    transfer::EncodeOutcome(told, slot.size(), outcomes.size() - i - 1, out);
  }
  const auto encoded = out.view();
  std::copy(encoded.begin(), encoded.end(), slot.begin());
  return {.bytes = static_cast<uint32_t>(out.size()),
          .count = static_cast<uint32_t>(outcomes.size())};
}

Status ImportLane::BeginFile(InodeNumber directory) {
  AbandonFile();
  SILTFS_RETURN_IF_ERROR(CheckOpened(directory));
  SILTFS_ASSIGN_OR_RETURN(const Attributes made, context_.file_system.MakeTemporaryFile(
                                                     directory, 0600, context_.rights.caller()));
  file_ = made.inode;
  return Status::Ok();
}

Status ImportLane::WriteFile(uint64_t offset, ByteView bytes) {
  if (!file_) return {StatusCode::kInvalidArgument, "no file is being written"};
  copy_.assign(bytes.begin(), bytes.end());
  return context_.file_system.Write(*file_, offset, copy_);
}

Result<Answer> ImportLane::FinishFile(const Request& request, MutableByteView slot) {
  SILTFS_ASSIGN_OR_RETURN(auto records, ReadRecords(request, slot, 1));
  if (!file_) return Status(StatusCode::kInvalidArgument, "no file is being written");
  DecodedRecord& record = records[0];
  record.extents.clear();
  const auto place = [&]() -> Result<PutOutcome> {
    SILTFS_RETURN_IF_ERROR(Prepare(record));
    AttributeChange whole;  // the file may end with a hole
    whole.size = record.image.size;
    SILTFS_RETURN_IF_ERROR(context_.file_system.SetAttributes(*file_, whole).status());
    const EntryImage image = record.Image();
    auto placed = context_.file_system.entries().Place(*file_, image);
    if (!placed.status().Is(StatusCode::kIsADirectory) ||
        (request.flags & transfer::kReplaceDirectories) == 0) {
      return placed;
    }
    TreeRemover remover(context_.file_system, context_.rights, announcer_, context_.stopped);
    SILTFS_RETURN_IF_ERROR(remover.Remove(image.parent, image.name).status());
    return context_.file_system.entries().Place(*file_, image);
  };
  const std::vector<Result<PutOutcome>> outcomes = {place()};
  AbandonFile();  // it has its name now, or is not needed
  if (EndsImport(outcomes[0].status())) return outcomes[0].status();
  return Conclude(records, outcomes, slot);
}

void ImportLane::AbandonFile() {
  if (!file_) return;
  context_.file_system.ReleaseFile(*file_);
  context_.file_system.Forget(*file_, 1);
  file_.reset();
}

Result<Answer> ImportLane::List(const Request& request, MutableByteView slot) {
  SILTFS_RETURN_IF_ERROR(CheckOpened(request.number));
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckList(request.number));
  Encoder out;
  Answer answer;
  SILTFS_RETURN_IF_ERROR(context_.file_system.ReadDirectory(
      request.number, request.second, [&](const DirectoryRecord& record) {
        if (record.name == "." || record.name == "..") return true;
        if (out.size() + transfer::ListedBytes(record.name) > slot.size()) return false;
        transfer::EncodeListedName(record.name, record.mode, out);
        ++answer.count;
        answer.second = record.cookie;
        return true;
      }));
  if (answer.count == 0) answer.second = 0;
  answer.bytes = static_cast<uint32_t>(out.size());
  const auto encoded = out.view();
  std::copy(encoded.begin(), encoded.end(), slot.begin());
  return answer;
}

Result<Answer> ImportLane::Remove(const Request& request, ByteView bytes) {
  SILTFS_ASSIGN_OR_RETURN(const auto records, ReadRecords(request, bytes, 1));
  const EntryImage& image = records[0].image;
  SILTFS_RETURN_IF_ERROR(CheckOpened(image.parent));
  if (!IsName(image.name)) return Status(StatusCode::kInvalidArgument, "is not a valid name");
  SILTFS_RETURN_IF_ERROR(context_.rights.CheckSearch(image.parent));
  TreeRemover remover(context_.file_system, context_.rights, announcer_, context_.stopped);
  SILTFS_ASSIGN_OR_RETURN(const uint64_t removed, remover.Remove(image.parent, image.name));
  return Answer{.number = removed};
}

}  // namespace siltfs

// The entries of an ImportWorker: offers, files, links and other types.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/import/import_records.h"
#include "tools/import/import_worker.h"

namespace siltfs {

using transfer::Answer;
using transfer::EntryRecord;
using transfer::RequestType;

namespace {

// A larger file is sent in several requests.
constexpr uint64_t kLargeFileBytes = 256u << 10;
// A file with more ranges of data is sent like a large one.
constexpr size_t kMaxExtents = 1024;

Status ChangedStatus() {
  return {StatusCode::kStale, "has changed while it was read, so its content may be inconsistent"};
}

// The ranges of data; more than kMaxExtents are cut off.
Result<std::vector<EntryRecord::Extent>> ExtentsOf(const SourceFile& file,
                                                   const SourceAttributes& attributes) {
  std::vector<EntryRecord::Extent> extents;
  const uint64_t size = attributes.size;
  if (size == 0) return extents;
  if (attributes.allocated_bytes >= size) {
    extents.push_back({0, static_cast<uint32_t>(size)});
    return extents;
  }
  for (uint64_t at = 0; at < size && extents.size() <= kMaxExtents;) {
    SILTFS_ASSIGN_OR_RETURN(const auto data, file.NextData(at, size));
    if (!data) break;
    const auto length = static_cast<uint32_t>(data->end - data->begin);
    const bool follows =
        !extents.empty() && extents.back().offset + extents.back().length == data->begin;
    if (follows) {
      extents.back().length += length;
    } else {
      extents.push_back({data->begin, length});
    }
    at = data->end;
  }
  return extents;
}

}  // namespace

Status ImportWorker::OfferAll(const DirectoryNodePtr& node, std::vector<Offered>& offered) {
  std::vector<Offered> needed;
  // Names of files whose first name is put elsewhere or later. They wait until this worker has no
  // file that it has claimed and not sent. Two workers might otherwise wait for each other.
  std::vector<Offered> links;
  const bool dry_run = job_.options().dry_run;
  for (size_t next = 0; next < offered.size();) {
    std::string payload;
    std::vector<Offered*> asked;
    for (; next < offered.size(); ++next) {
      Offered& one = offered[next];
      if (one.attributes.links > 1 && !dry_run && !one.first_of_linked) {
        if (!job_.ClaimFirst(one.attributes)) {
          links.push_back(one);
          continue;
        }
        one.first_of_linked = true;
      }
      EntryRecord record = EntryRecordOf(*node, one.name, one.attributes, {});
      if (one.attributes.IsSymlink()) {
        auto target = node->source->ReadLink(one.name);
        if (target.ok()) record.target = *target;
      }
      const std::string encoded = transfer::EncodeRecord(record);
      if (payload.size() + encoded.size() > transfer::kSlotBytes) break;
      payload += encoded;
      asked.push_back(&one);
    }
    if (asked.empty()) continue;
    SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                            Call({.type = RequestType::kOffer,
                                  .flags = node->existed ? uint8_t{0} : transfer::kNew,
                                  .count = static_cast<uint32_t>(asked.size()),
                                  .number = dry_run ? 0 : node->reference},
                                 payload));
    SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
    SILTFS_ASSIGN_OR_RETURN(
        const auto outcomes,
        transfer::DecodeOutcomes(lane_.slot(2).first(answer.bytes), asked.size()));
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const Offered& one = *asked[i];
      if (outcomes[i].code == StatusCode::kOk && outcomes[i].effect == PutEffect::kNeeded) {
        needed.push_back(one);
        continue;
      }
      transfer::Outcome outcome = outcomes[i];
      // A file that shares the reference's recipe was not read, either.
      outcome.effect = PutEffect::kUnchanged;
      const bool linked = one.first_of_linked;
      Settle(node, one.name, linked ? std::optional(one.attributes) : std::nullopt, outcome);
    }
  }
  offered.clear();
  std::stable_partition(needed.begin(), needed.end(),
                        [](const Offered& one) { return one.first_of_linked; });
  for (const Offered& one : needed) {
    if (job_.stopped()) return Status::Ok();
    if (dry_run) {
      ++job_.totals().files;
      job_.TellChange("put " + PathIn(*node, one.name));
    } else {
      SILTFS_RETURN_IF_ERROR(PutOffered(node, one));
    }
  }
  for (Offered& one : links) {
    if (job_.stopped()) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const bool linked, PutAsLink(node, one.name, one.attributes));
    if (linked) continue;
    one.first_of_linked = true;
    SILTFS_RETURN_IF_ERROR(PutOffered(node, one));
  }
  return Status::Ok();
}

Status ImportWorker::PutOffered(const DirectoryNodePtr& node, const Offered& one) {
  if (one.attributes.IsRegular()) return PutFile(node, one.name, one.first_of_linked);
  return PutSpecial(node, one.name, one.attributes, one.first_of_linked);
}

Result<bool> ImportWorker::PutAsLink(const DirectoryNodePtr& node, const std::string& name,
                                     const SourceAttributes& attributes) {
  while (!job_.stopped()) {
    InodeNumber inode = 0;
    switch (job_.ClaimLinked(attributes, inode)) {
      case ImportJob::Claim::kFirst:
        return false;
      case ImportJob::Claim::kPending:
        // This worker may have the file itself, in a record that is not answered.
        SILTFS_RETURN_IF_ERROR(Drain());
        job_.WaitForLinked(attributes);
        continue;
      case ImportJob::Claim::kKnown:
        break;
    }
    EntryRecord record;
    record.kind = transfer::RecordKind::kLink;
    record.number = inode;
    record.parent = node->target;
    record.name = name;
    SILTFS_RETURN_IF_ERROR(AddRecord(record, {.directory = node, .name = name}));
    return true;
  }
  return true;
}

Status ImportWorker::PutFile(const DirectoryNodePtr& node, const std::string& name, bool claimed) {
  std::optional<SourceAttributes> claim;
  const auto put = [&]() -> Status {
    SILTFS_ASSIGN_OR_RETURN(const SourceFile file, node->source->OpenFile(name));
    for (const bool last_attempt : {false, true}) {
      SILTFS_ASSIGN_OR_RETURN(const SourceAttributes before, file.Attributes());
      if (!before.IsRegular()) return Status(StatusCode::kStale, "is no longer a regular file");
      if (before.links > 1 && !claim) {
        if (!claimed) {
          SILTFS_ASSIGN_OR_RETURN(const bool linked, PutAsLink(node, name, before));
          if (linked) return Status::Ok();
        }
        claim = before;
      }
      const bool large = before.size > kLargeFileBytes;
      SILTFS_ASSIGN_OR_RETURN(const bool sent,
                              large ? SendLarge(node, name, file, before, last_attempt)
                                    : SendSmall(node, name, file, before, last_attempt));
      if (sent) return Status::Ok();
    }
    return Status::Ok();
  };
  const Status outcome = put();
  if (outcome.ok() || outcome.Is(StatusCode::kAborted) || outcome.Is(StatusCode::kNoSpace) ||
      outcome.Is(StatusCode::kReadOnly) || outcome.Is(StatusCode::kCorruption) ||
      outcome.Is(StatusCode::kInterrupted)) {
    return outcome;
  }
  if (claim) job_.Resolve(*claim, 0);
  Fail(*node, name, outcome);
  return Status::Ok();
}

Result<bool> ImportWorker::SendSmall(const DirectoryNodePtr& node, const std::string& name,
                                     const SourceFile& file, const SourceAttributes& before,
                                     bool last_attempt) {
  SILTFS_ASSIGN_OR_RETURN(const auto xattrs, file.Xattrs());
  EntryRecord record = EntryRecordOf(*node, name, before, xattrs);
  SILTFS_ASSIGN_OR_RETURN(record.extents, ExtentsOf(file, before));
  if (record.extents.size() > kMaxExtents) return SendLarge(node, name, file, before, last_attempt);
  uint64_t data_bytes = 0;
  for (const EntryRecord::Extent& extent : record.extents) data_bytes += extent.length;
  std::string header = transfer::EncodeRecord(record);
  if (header.size() + data_bytes > transfer::kSlotBytes)
    return Status(StatusCode::kUnsupported, "its extended attributes are too large to be imported");
  SILTFS_RETURN_IF_ERROR(MakeRoom(header.size() + data_bytes));
  MutableByteView place = lane_.slot(filling_.slot).subspan(filling_.used);
  size_t at = header.size();
  for (const EntryRecord::Extent& extent : record.extents) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got,
                            file.Read(extent.offset, place.subspan(at, extent.length)));
    if (got < extent.length) {
      if (!last_attempt) return false;
      return Status(StatusCode::kStale, "was cut short while it was read");
    }
    at += got;
  }
  job_.totals().bytes_read += data_bytes;
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes after, file.Attributes());
  if (Changed(before, after)) {
    if (!last_attempt) return false;
    // Without facts of the source, the next import reads the file again.
    Fail(*node, name, ChangedStatus());
    record.source.reset();
    header = transfer::EncodeRecord(record);
  }
  std::memcpy(place.data(), header.data(), header.size());
  filling_.used += at;
  filling_.sent.push_back({.directory = node, .name = name});
  if (before.links > 1) filling_.sent.back().linked = before;
  return true;
}

Result<bool> ImportWorker::SendLarge(const DirectoryNodePtr& node, const std::string& name,
                                     const SourceFile& file, const SourceAttributes& before,
                                     bool last_attempt) {
  SILTFS_ASSIGN_OR_RETURN(const auto xattrs, file.Xattrs());
  EntryRecord record = EntryRecordOf(*node, name, before, xattrs);
  SILTFS_RETURN_IF_ERROR(Drain());
  SILTFS_ASSIGN_OR_RETURN(const Answer begun,
                          Call({.type = RequestType::kBeginFile, .number = node->target}, {}));
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(begun));
  uint8_t slot = 0;
  int waiting = 0;
  const auto await = [&]() -> Status {
    --waiting;
    SILTFS_ASSIGN_OR_RETURN(const Answer written, lane_.Await());
    return transfer::StatusOfAnswer(written);
  };
  // Sends the file; false if it has changed. Requests may be left without an answer.
  const auto send = [&]() -> Result<bool> {
    for (uint64_t at = 0; at < before.size;) {
      SILTFS_ASSIGN_OR_RETURN(const auto data, file.NextData(at, before.size));
      if (!data) break;
      for (at = data->begin; at < data->end;) {
        if (job_.stopped()) return Status(StatusCode::kInterrupted, "was interrupted");
        if (waiting == 2) SILTFS_RETURN_IF_ERROR(await());
        const size_t wanted = std::min<uint64_t>(transfer::kSlotBytes, data->end - at);
        SILTFS_ASSIGN_OR_RETURN(const size_t got, file.Read(at, lane_.slot(slot).first(wanted)));
        if (got < wanted) return false;
        SILTFS_RETURN_IF_ERROR(lane_.Post({.type = RequestType::kWriteFile,
                                           .slot = slot,
                                           .bytes = static_cast<uint32_t>(got),
                                           .number = at}));
        ++waiting;
        slot = 1 - slot;
        at += got;
        job_.totals().bytes_read += got;
      }
    }
    return true;
  };
  Result<bool> sent = send();
  while (waiting > 0) {
    const Status written = await();
    if (!written.ok() && sent.ok()) sent = written;
  }
  SILTFS_RETURN_IF_ERROR(sent.status());
  if (!*sent) {
    if (!last_attempt) return false;
    return Status(StatusCode::kStale, "was cut short while it was read");
  }
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes after, file.Attributes());
  if (Changed(before, after)) {
    if (!last_attempt) return false;
    Fail(*node, name, ChangedStatus());
    record.source.reset();
  }
  const uint8_t flags = job_.replaces_directories() ? transfer::kReplaceDirectories : 0;
  SILTFS_ASSIGN_OR_RETURN(const Answer answer,
                          Call({.type = RequestType::kFinishFile, .flags = flags, .count = 1},
                               transfer::EncodeRecord(record)));
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
  SILTFS_ASSIGN_OR_RETURN(const auto outcomes,
                          transfer::DecodeOutcomes(lane_.slot(2).first(answer.bytes), 1));
  Settle(node, name, before.links > 1 ? std::optional(before) : std::nullopt, outcomes[0]);
  return true;
}

Status ImportWorker::PutSpecial(const DirectoryNodePtr& node, const std::string& name,
                                const SourceAttributes& attributes, bool claimed) {
  const auto put = [&]() -> Status {
    if (attributes.links > 1 && !claimed) {
      SILTFS_ASSIGN_OR_RETURN(const bool linked, PutAsLink(node, name, attributes));
      if (linked) return Status::Ok();
      claimed = true;
    }
    SILTFS_ASSIGN_OR_RETURN(const auto xattrs, node->source->XattrsOf(name));
    EntryRecord record = EntryRecordOf(*node, name, attributes, xattrs);
    if (attributes.IsSymlink()) {
      SILTFS_ASSIGN_OR_RETURN(record.target, node->source->ReadLink(name));
    }
    Sent sent{.directory = node, .name = name};
    if (claimed) sent.linked = attributes;
    return AddRecord(record, std::move(sent));
  };
  const Status outcome = put();
  if (outcome.ok() || outcome.Is(StatusCode::kAborted) || outcome.Is(StatusCode::kNoSpace) ||
      outcome.Is(StatusCode::kReadOnly)) {
    return outcome;
  }
  if (claimed) job_.Resolve(attributes, 0);
  Fail(*node, name, outcome);
  return Status::Ok();
}

}  // namespace siltfs

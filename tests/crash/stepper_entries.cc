// The part of Stepper that puts whole entries, as imports do.
#include <fmt/format.h>

#include <algorithm>

#include "tests/crash/source_image.h"
#include "tests/crash/stepper.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

// As that of an import, whose files inherit no access control list from their directory.
constexpr Caller kImporter{.uid = 1000, .gid = 1000, .acls = false};
constexpr size_t kStreamedBytes = 6000;  // of one write

const char* EffectName(PutEffect effect) {
  static constexpr const char* kNames[] = {"unchanged", "made", "replaced", "needed"};
  return kNames[static_cast<size_t>(effect)];
}

}  // namespace

std::string Stepper::AnswerPut(const Result<PutOutcome>& outcome) {
  if (!outcome.ok()) return Answer(outcome.status());
  if (outcome->inode != 0) touched_.push_back(outcome->inode);
  return Answer(Status::Ok()) + " " + EffectName(outcome->effect);
}

std::vector<Stepper::CodedAnswer> Stepper::StepTogether(std::span<const Operation> operations) {
  std::vector<CodedAnswer> answers;
  if (operations.size() == 1) {
    answers.push_back({Step(operations[0]), StatusCode::kOk});
    answers.back().code = last_.code();
    return answers;
  }
  BeginStep();
  std::vector<SourceImage> sources;
  std::vector<Result<InodeNumber>> directories;
  for (const Operation& operation : operations) {
    sources.emplace_back(operation.data_seed);
    directories.push_back(Find(operation.directory, ""));
  }
  std::vector<EntryImage> images;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (directories[i].ok()) images.push_back(sources[i].At(*directories[i], operations[i].name));
  }
  const std::vector<Result<PutOutcome>> outcomes = fs_.entries().Put(images);
  size_t next = 0;
  for (const Result<InodeNumber>& directory : directories) {
    if (!directory.ok()) {
      answers.push_back({Answer(directory.status()), StatusCode::kOk});
      continue;
    }
    const Result<PutOutcome>& outcome = outcomes[next++];
    if (outcome.ok() && outcome->effect != PutEffect::kUnchanged) made_.push_back(outcome->inode);
    answers.push_back({AnswerPut(outcome), StatusCode::kOk});
    answers.back().code = last_.code();
  }
  return answers;
}

std::string Stepper::StepOnEntry(const Operation& operation, InodeNumber directory,
                                 InodeNumber other) {
  EntryStore& entries = fs_.entries();
  switch (operation.kind) {
    case Kind::kPut: {
      if (operation.name.starts_with("d") && !Find(operation.directory, operation.name).ok())
        return "no directory to replace";  // names of directories stay those of directories
      const SourceImage source(operation.data_seed);
      const EntryImage image = source.At(directory, operation.name);
      const Result<PutOutcome> outcome = entries.Put({&image, 1})[0];
      if (outcome.ok() && outcome->effect != PutEffect::kUnchanged) made_.push_back(outcome->inode);
      return AnswerPut(outcome);
    }
    case Kind::kOffer: {
      const SourceImage source(operation.data_seed);
      EntryImage image = source.At(directory, operation.name);
      image.extents = {};
      image.xattrs = {};
      const bool probably_new = DetailsOf(operation.data_seed) % 4 == 2;
      const auto outcome = entries.Offer(image, other, probably_new);
      const bool shared = outcome.ok() && (outcome->effect == PutEffect::kMade ||
                                           outcome->effect == PutEffect::kReplaced);
      if (shared) made_.push_back(outcome->inode);
      return AnswerPut(outcome);
    }
    case Kind::kMakeTemporary: {
      Caller caller = kImporter;
      caller.acls = DetailsOf(operation.data_seed) % 8 == 0;
      const auto made = fs_.MakeTemporaryFile(directory, 0600, caller);
      if (made.ok()) {
        Close(operation.slot);
        slots_.at(operation.slot) = made->inode;
      }
      return AnswerMade(made);
    }
    case Kind::kPlace:
      return Place(operation, directory);
    case Kind::kStream:
      return Stream(operation, directory);
    case Kind::kAddName: {
      const auto target = Find(operation.directory, operation.name);
      if (!target.ok()) return Answer(target.status());
      return AnswerPut(entries.Link(*target, other, operation.other_name));
    }
    case Kind::kClone: {
      const auto target = Find(operation.directory, operation.name);
      if (!target.ok()) return Answer(target.status());
      return Clone(*target, other, operation.other_name);
    }
    default: {
      const auto target = Find(operation.directory, operation.name);
      if (!target.ok()) return Answer(target.status());
      const SourceImage source(operation.data_seed, SourceImage::Type::kDirectory);
      const auto changed = entries.SetDirectory(*target, source.At(0, ""));
      if (!changed.ok()) return Answer(changed.status());
      touched_.push_back(*target);
      return Answer(Status::Ok()) + (*changed ? " changed" : " unchanged");
    }
  }
}

std::string Stepper::Clone(InodeNumber source, InodeNumber parent, const std::string& name) {
  // Half of the clones are loaded, in several batches.
  const auto cloned = fs_.entries().Clone({.source = source,
                                           .parent = parent,
                                           .name = name,
                                           .most_links = 1,
                                           .batch_bytes = source % 2 == 0 ? 1u : 8u << 20});
  if (!cloned.ok()) return Answer(cloned.status());
  made_.push_back(cloned->inode);
  touched_.push_back(cloned->inode);
  return Answer(Status::Ok()) + (cloned->totals.directories > 0 ? " with directories" : "");
}

std::string Stepper::Place(const Operation& operation, InodeNumber directory) {
  const InodeNumber inode = slots_.at(operation.slot);
  if (inode == 0) return "nothing open";
  const auto attributes = fs_.GetAttributes(inode);
  if (!attributes.ok()) return Answer(attributes.status());
  const SourceImage source(operation.data_seed, SourceImage::Type::kFile);
  EntryImage image = source.At(directory, operation.name);
  image.size = attributes->size;
  image.source.reset();  // the content is not that of a source
  return AnswerPut(fs_.entries().Place(inode, image));
}

Status Stepper::WriteAll(InodeNumber file, const EntryImage& image) {
  for (const ExtentImage& extent : image.extents) {
    for (size_t at = 0; at < extent.bytes.size(); at += kStreamedBytes) {
      const size_t size = std::min(kStreamedBytes, extent.bytes.size() - at);
      SILTFS_RETURN_IF_ERROR(fs_.Write(file, extent.offset + at, extent.bytes.subspan(at, size)));
    }
  }
  AttributeChange whole;  // the file may end with a hole
  whole.size = image.size;
  return fs_.SetAttributes(file, whole).status();
}

std::string Stepper::Stream(const Operation& operation, InodeNumber directory) {
  if (operation.name.starts_with("d") && !Find(operation.directory, operation.name).ok())
    return "no directory to replace";
  const SourceImage source(operation.data_seed, SourceImage::Type::kFile);
  const EntryImage image = source.At(directory, operation.name);
  const auto made = fs_.MakeTemporaryFile(directory, 0600, kImporter);
  if (!made.ok()) return Answer(made.status());
  made_.push_back(made->inode);
  Result<PutOutcome> placed = PutOutcome();
  Status written = WriteAll(made->inode, image);
  if (written.ok()) {
    placed = fs_.entries().Place(made->inode, image);
  } else {
    placed = std::move(written);
  }
  fs_.ReleaseFile(made->inode);
  fs_.Forget(made->inode, 1);
  return AnswerPut(placed);
}

}  // namespace siltfs::testing

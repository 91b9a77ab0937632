// Checks the images of entries, and turns them into records and extended attributes.
//
// Images come from other processes, so every field may have any value. Thread-safety: the functions
// have no state; the caller holds the locks of inodes that it passes. Errors: as stated.
// Durability: none.
#pragma once

#include "fs/inodes/change.h"
#include "fs/inodes/inode_table.h"
#include "fs/interface/entry_store.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/inode_record.h"
#include "fs/records/source_record.h"

namespace siltfs {

// OK if the image describes an entry of this kind. Checks everything but the extents.
// kInvalidArgument, kNameTooLong, kFileTooLarge or kUnsupported otherwise.
Status CheckEntryImage(const EntryImage& image, bool directory);

// The record of a new inode without content.
InodeRecord RecordOf(const EntryImage& image, int64_t now);
// Sets owner, mode and times of an inode.
void SetAttributesOf(InodeRecord& record, const EntryImage& image);
// Whether the record has the type, owner, mode, mtime, device and target of the image.
bool HasAttributesOf(const InodeRecord& record, const EntryImage& image);

// Whether the inode has exactly the extended attributes of the image, hidden ones aside.
Result<bool> HasXattrsOf(const MetadataStore& metadata, const EntryImage& image,
                         const Inode& inode);

// Adds the extended attributes of the image to an inode that has none.
Status AddXattrs(const EntryImage& image, Inode& inode, Change& change);
// Makes the inode's extended attributes equal to those of the image, except for hidden ones.
// Returns whether any has changed.
Result<bool> ReplaceXattrs(const MetadataStore& metadata, const EntryImage& image, Inode& inode,
                           Change& change);
// Adds the extended attributes of the inode `from`, except for hidden ones, of which it has
// `hidden`, to an inode that has none.
Status CopyXattrs(const MetadataStore& metadata, const Inode& from, uint32_t hidden, Inode& inode,
                  Change& change);

// Keeps the image's source facts with a regular file, whose record must be complete except for its
// number of extended attributes. `present`: the inode has a source record already.
void PutSourceRecord(const EntryImage& image, bool present, Inode& inode, Change& change);
// The source record of an inode; nullopt if it has none.
Result<std::optional<SourceRecord>> FindSourceRecord(const MetadataStore& metadata,
                                                     const Inode& inode);

}  // namespace siltfs

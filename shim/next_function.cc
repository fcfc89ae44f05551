#include "shim/next_function.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

namespace happy {
namespace {

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // the linker's

// The loader's account of itself, to which the program's dynamic section leads debuggers; nullptr: it has none.
const r_debug* loader() {
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = headers == nullptr ? 0 : getauxval(AT_PHNUM);
  std::uintptr_t base = 0;
  const ElfW(Phdr)* dynamic = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      base = reinterpret_cast<std::uintptr_t>(headers) - headers[i].p_vaddr;
    if (headers[i].p_type == PT_DYNAMIC) dynamic = &headers[i];
  }
  if (dynamic == nullptr) return nullptr;
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + dynamic->p_vaddr);
  while (entry->d_tag != DT_NULL && entry->d_tag != DT_DEBUG) ++entry;
  return entry->d_tag == DT_NULL ? nullptr : reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
}

// Of a library's dynamic section.
struct symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  // DT_GNU_HASH
  const ElfW(Half) * versions = nullptr;
};

// The loader has made most of these addresses; some libraries' it leaves as they are in the file.
std::uintptr_t address_of(const link_map& library, ElfW(Addr) value) {
  return value < library.l_addr ? library.l_addr + value : value;
}

symbols symbols_of(const link_map& library) {
  symbols s;
  const ElfW(Dyn)* entry = library.l_ld;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t at = address_of(library, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) s.table = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) s.names = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_GNU_HASH) s.hash = reinterpret_cast<const std::uint32_t*>(at);
    if (entry->d_tag == DT_VERSYM) s.versions = reinterpret_cast<const ElfW(Half)*>(at);
  }
  return s;
}

// As the linker fills DT_GNU_HASH.
std::uint32_t hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Of several versions, the one that programs are linked with today.
bool is_current(const symbols& s, std::uint32_t index) {
  constexpr ElfW(Half) hidden = 0x8000;
  return s.versions == nullptr || (s.versions[index] & hidden) == 0;
}

const ElfW(Sym) * find(const symbols& s, const char* name) {
  const std::uint32_t buckets = s.hash[0];
  const std::uint32_t first = s.hash[1];
  const std::uint32_t filter_words = s.hash[2];
  const std::uint32_t* heads = s.hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof *s.hash);
  const std::uint32_t* chains = heads + buckets;
  const std::uint32_t wanted = hash_of(name);
  std::uint32_t at = buckets == 0 ? 0 : heads[wanted % buckets];
  if (at < first) return nullptr;
  for (;; ++at) {
    const ElfW(Sym)& symbol = s.table[at];
    const std::uint32_t hash = chains[at - first];
    if ((hash | 1) == (wanted | 1) && symbol.st_shndx != SHN_UNDEF && is_current(s, at) &&
        std::strcmp(s.names + symbol.st_name, name) == 0) {
      return &symbol;
    }
    if ((hash & 1) != 0) return nullptr;
  }
}

struct found {
  void* function = nullptr;
  const link_map* library = nullptr;
};

// Whether the search ends here.
bool look_into(const link_map& library, const char* name, found& out) {
  const symbols its = symbols_of(library);
  if (its.table == nullptr || its.names == nullptr) return false;
  // The kernel's own, which has no path, has none of these functions; of others nobody knows.
  if (its.hash == nullptr) return std::strrchr(library.l_name, '/') != nullptr;
  const ElfW(Sym)* symbol = find(its, name);
  if (symbol == nullptr) return false;
  // What chooses among functions as it is asked is the loader's to call.
  const auto type = ELF64_ST_TYPE(symbol->st_info);
  if (type == STT_FUNC || type == STT_OBJECT)
    out = {reinterpret_cast<void*>(library.l_addr + symbol->st_value), &library};
  return true;
}

// The list grows at its end alone: what stands there up to the loader itself has been there from the start, and stays.
found look_behind_us(const char* name) {
  found out;
  const r_debug* const list = loader();
  const link_map* library = list == nullptr ? nullptr : list->r_map;
  const auto own = reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
  while (library != nullptr && library->l_addr != own && library->l_addr != list->r_ldbase)
    library = library->l_next;
  while (library != nullptr && library->l_addr != list->r_ldbase) {
    library = library->l_next;
    if (library != nullptr && look_into(*library, name, out)) break;
  }
  return out;
}

// Before 2.34 libc's queries were a file of their own (libresolv-2.31.so); the sanitizers look at what is asked, and ask
// libc.
constexpr char parts_of_libc[][11] = {"libresolv", "libasan", "libtsan"};

bool is_part_of_libc(const char* path) {
  const char* slash = std::strrchr(path, '/');
  if (slash == nullptr) return false;
  for (const auto& stem : parts_of_libc) {
    const std::size_t length = std::strlen(stem);
    const bool begins = std::strncmp(slash + 1, stem, length) == 0;
    if (begins && (slash[1 + length] == '.' || slash[1 + length] == '-')) return true;
  }
  return false;
}

}  // namespace

void* find_next_function(const char* name) {
  const found next = look_behind_us(name);
  return next.function != nullptr ? next.function : dlsym(RTLD_NEXT, name);
}

bool is_libcs(const char* name) {
  const found known = look_behind_us("gnu_get_libc_version");
  const found next = look_behind_us(name);
  if (known.library == nullptr) return true;  // nobody can tell
  return next.library != nullptr &&
         (next.library == known.library || is_part_of_libc(next.library->l_name));
}

}  // namespace happy

#include "shim/next_function.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace happy {
namespace {

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // the linker's

// Of a library's dynamic section.
struct symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  // DT_GNU_HASH
  const ElfW(Half) * versions = nullptr;
};

// The loader has made most of these addresses; some libraries' it leaves as they are in the file.
std::uintptr_t address_of(const dl_phdr_info& library, ElfW(Addr) value) {
  return value < library.dlpi_addr ? library.dlpi_addr + value : value;
}

const ElfW(Dyn) * dynamic_section(const dl_phdr_info& library) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library.dlpi_phdr[i];
    if (header.p_type == PT_DYNAMIC)
      return reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + header.p_vaddr);
  }
  return nullptr;
}

symbols symbols_of(const dl_phdr_info& library) {
  symbols s;
  const ElfW(Dyn)* entry = dynamic_section(library);
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

struct search {
  const char* name;
  bool behind_us;
  void* found;
};

// A callback of dl_iterate_phdr(), in the order in which names are looked up: 1 ends the search.
int look_into(dl_phdr_info* library, std::size_t, void* argument) {
  auto& s = *static_cast<search*>(argument);
  if (!s.behind_us) {
    s.behind_us = library->dlpi_addr == reinterpret_cast<ElfW(Addr)>(&__ehdr_start);
    return 0;
  }
  const symbols its = symbols_of(*library);
  if (its.table == nullptr || its.names == nullptr) return 0;
  // The kernel's own, which has no path, has none of these functions; of others nobody knows.
  if (its.hash == nullptr) return std::strrchr(library->dlpi_name, '/') == nullptr ? 0 : 1;
  const ElfW(Sym)* symbol = find(its, s.name);
  if (symbol == nullptr) return 0;
  // What chooses among functions as it is asked is the loader's to call.
  const auto type = ELF64_ST_TYPE(symbol->st_info);
  if (type == STT_FUNC || type == STT_OBJECT)
    s.found = reinterpret_cast<void*>(library->dlpi_addr + symbol->st_value);
  return 1;
}

struct place {
  std::uintptr_t address;
  mapped_library library;
};

// A callback, too.
int look_for_place(dl_phdr_info* library, std::size_t, void* argument) {
  auto& p = *static_cast<place*>(argument);
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library->dlpi_phdr[i];
    const std::uintptr_t begin = library->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || p.address - begin >= header.p_memsz) continue;
    p.library = {reinterpret_cast<const void*>(library->dlpi_addr), library->dlpi_name};
    return 1;
  }
  return 0;
}

}  // namespace

mapped_library library_at(const void* address) {
  place p{reinterpret_cast<std::uintptr_t>(address), {nullptr, nullptr}};
  dl_iterate_phdr(look_for_place, &p);
  return p.library;
}

void* find_next_function(const char* name) {
  search s{name, false, nullptr};
  dl_iterate_phdr(look_into, &s);
  return s.found != nullptr ? s.found : dlsym(RTLD_NEXT, name);
}

}  // namespace happy

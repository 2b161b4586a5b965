package hopline.host

import hopline.AgentClient
import hopline.HoplineException
import hopline.Options
import hopline.PagesEnd
import hopline.ProductFilter
import hopline.Secret
import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows

/** Lists that are walked page by page. */
class PagesTest {
    /** A service whose pages hold one product each and name these next ones. */
    private fun pages(vararg cursors: String?): Scripted {
        val left = CopyOnWriteArrayList(cursors.toList())
        var number = 0
        return Scripted {
            number += 1
            val item =
                """{"product_no":"p-$number","name":"","type":"dynamic","sharing":"shared","available":true,"price":1,"currency":"USD","unit":"GB"}"""
            answered("""{"items":[$item],"next_cursor":${left.removeAt(0)?.let { "\"$it\"" }}}""")
        }
    }

    private fun client(transport: Scripted) = AgentClient(Secret("key"), "https://api.example/v1", transport, options = Options(attempts = 1))

    @Test
    fun `a walk gives every item once, in order`(): Unit = runBlocking {
        Sandbox("--seed", "91").use { sandbox ->
            sandbox.client().use { agent ->
                val whole = agent.listProducts(inStock = false, limit = 100).items
                assertTrue(whole.size > 4)
                for (limit in listOf(1L, 2L, 3L, 100L)) {
                    val walk = agent.walkProducts(inStock = false, limit = limit)
                    assertEquals(whole, walk.items().toList())
                    assertEquals(PagesEnd.LAST_PAGE to null, walk.end to walk.position)
                    assertTrue(walk.items().toList().isEmpty())
                    val read = agent.walkProducts(inStock = false, limit = limit).pages().toList()
                    assertEquals(whole, read.flatMap { it.items })
                    assertEquals((whole.size + limit - 1) / limit, read.size.toLong())
                }
                val static = agent.listPublicProducts(type = ProductFilter.Static, limit = 100).items
                assertEquals(static, agent.walkPublicProducts(type = ProductFilter.Static, limit = 1).items().toList())
            }
        }
    }

    @Test
    fun `a walk goes on in another client where it was left`(): Unit = runBlocking {
        Sandbox("--seed", "92").use { sandbox ->
            val whole = sandbox.client().use { it.listProducts(inStock = false, limit = 100).items }
            val saved = sandbox.client().use { agent ->
                val walk = agent.walkProducts(inStock = false, limit = 2)
                val begin = walk.position
                assertEquals(whole.take(1), walk.items().take(1).toList())
                assertEquals(begin, walk.position, "the page is not at its end")
                assertEquals(whole.subList(1, 2), walk.items().take(1).toList(), "who collects again goes on")
                assertNotEquals(begin, walk.position)
                walk.position
            }
            sandbox.client().use { agent ->
                val further = agent.walkProducts(inStock = false, limit = 2, position = saved)
                assertEquals(whole.drop(2), further.items().toList())
                assertEquals(PagesEnd.LAST_PAGE, further.end)
            }
        }
    }

    @Test
    fun `a page of which a part was handed out comes whole to who wants pages`(): Unit = runBlocking {
        Sandbox("--seed", "95").use { sandbox ->
            sandbox.client().use { agent ->
                val whole = agent.listProducts(inStock = false, limit = 100).items
                val walk = agent.walkProducts(inStock = false, limit = 2)
                assertEquals(whole.take(1), walk.items().take(1).toList())
                assertEquals(whole, walk.pages().toList().flatMap { it.items })
                assertEquals(emptyList<Any>(), walk.items().toList())
            }
        }
    }

    @Test
    fun `a cap ends a walk, and a higher one goes on`(): Unit = runBlocking {
        Sandbox("--seed", "93").use { sandbox ->
            sandbox.client().use { agent ->
                val whole = agent.listProducts(inStock = false, limit = 100).items
                val walk = agent.walkProducts(inStock = false, limit = 1, maxPages = 2)
                assertEquals(whole.take(2) to PagesEnd.PAGE_CAP, walk.items().toList() to walk.end)
                val further = agent.walkProducts(inStock = false, limit = 1, position = walk.position, maxPages = 3)
                assertEquals(listOf(whole[2]) to PagesEnd.PAGE_CAP, further.items().toList() to further.end)
            }
        }
    }

    @Test
    fun `a list that never ends is left, and an empty cursor is its end`(): Unit = runBlocking {
        val service = pages("a", "b", "a", "c")
        client(service).use { agent ->
            val walk = agent.walkProducts()
            assertEquals(listOf("p-1", "p-2", "p-3"), walk.items().toList().map { it.productNo })
            assertEquals(PagesEnd.REPEATED_CURSOR, walk.end)
            assertEquals(listOf("", "a", "b"), service.sent.map { it.url.substringAfter("cursor=", "") })
        }
        client(pages("")).use { agent -> assertEquals(1, agent.walkProducts().items().toList().size) }
    }

    @Test
    fun `a page that can't be read loses nothing`(): Unit = runBlocking {
        Sandbox("--seed", "94").use { sandbox ->
            sandbox.client(options = Options(attempts = 1)).use { agent ->
                val whole = agent.listProducts(inStock = false, limit = 100).items
                val walk = agent.walkProducts(inStock = false, limit = 2)
                val given = walk.items().take(2).toList()
                sandbox.fault("list_products", """{"kind":"html","status":502}""")
                assertThrows<HoplineException> { runBlocking { walk.items().toList() } }
                assertNull(walk.end)
                assertEquals(whole, given + walk.items().toList())
            }
        }
    }

    @Test
    fun `what can't be walked is refused before anything is sent`(): Unit = runBlocking {
        val nobody = Scripted { error("nothing was to be sent") }
        client(nobody).use { agent ->
            val odd = listOf("", "nothing", "{}", "[]", """{"operation":"get_balance"}""", """{"operation":"list_products","pages":-1}""", "\ud800")
            for (position in odd) assertThrows<HoplineException.Invalid>(position) { agent.walkProducts(position = position) }
            val other = assertThrows<HoplineException.Invalid> { agent.walkProducts(position = agent.walkPublicProducts().position) }
            assertTrue("belongs to `listPublicProducts`" in other.message!!)
            for (wrong in listOf(0, -1)) {
                assertEquals("maxPages", assertThrows<HoplineException.Invalid> { agent.walkProducts(maxPages = wrong) }.field)
            }
            assertEquals("limit", assertThrows<HoplineException.Invalid> { runBlocking { agent.walkProducts(limit = 0).items().toList() } }.field)
        }
        assertTrue(nobody.sent.isEmpty())
    }
}

import asyncio
import datetime

import hopline


async def main() -> None:
    async with hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records")) as agent:

        async def job(name: str) -> str:
            intent = f"{name}-{datetime.date.today()}"
            try:
                async with agent.open_session(session_type="dynamic", product_no="dynamic-world", intent=intent) as session:
                    return f"{name}: {session.session_id} is {session.phase}"
            except hopline.Ended as ended:
                return f"{name}: today's session {ended.session_id} is over"

        for line in await asyncio.gather(*(job(f"job-{n}") for n in range(5))):
            print(line)


asyncio.run(main())
